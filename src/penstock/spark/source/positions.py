"""Offsets in the JSON of the `kafka` format: `{"topic": {"0": 23, "1": -2}}`."""

import json
from collections.abc import Mapping
from typing import Any

from penstock.errors import ConfigError
from penstock.spark.options import MAX_INT64
from penstock.types import Offset, TopicPartition


def as_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """As Spark writes it to a checkpoint; sorted, so that equal offsets are equal text."""
    nested: dict[str, dict[str, int]] = {}
    for each in sorted(offsets):
        nested.setdefault(each.topic, {})[str(each.partition)] = int(offsets[each])
    return nested


def from_json(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, Offset]:
    """The offsets in JSON of `as_json`, or of a checkpoint of the `kafka` format."""
    if isinstance(nested.get("shareGroup"), str):
        raise ConfigError(
            f"the checkpoint is of share group {nested['shareGroup']}; set option shareGroup, or "
            "use another checkpoint"
        )
    return {
        TopicPartition(topic, int(index)): Offset(offset)
        for topic, offsets in nested.items()
        for index, offset in offsets.items()
    }


def parse_numbers(option: str, text: str, *, low: int) -> dict[TopicPartition, int]:
    """Numbers by partition, from the JSON of an option."""
    example = f'option {option} must be JSON like {{"topic": {{"0": 23}}}}'
    try:
        parsed: Any = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{example}: {error}") from None
    if not isinstance(parsed, dict) or not parsed:
        raise ConfigError(example)
    found = {}
    for topic, numbers in parsed.items():
        if not isinstance(numbers, dict):
            raise ConfigError(f"{example}: topic {topic} has no partitions")
        for index, number in numbers.items():
            if not (index.isascii() and index.isdigit()):
                raise ConfigError(f"{example}: {index!r} is not a partition of {topic}")
            if type(number) is not int or not low <= number <= MAX_INT64:
                raise ConfigError(f"{example}: {number!r} of {topic}-{index}")
            found[TopicPartition(topic, int(index))] = number
    return found
