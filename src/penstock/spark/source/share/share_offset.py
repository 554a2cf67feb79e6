"""Spark's offset of a share group: the records of one micro-batch.

A share group has no position, so an offset lists the records locked for the micro-batch that ends
with it. Spark writes it to the checkpoint before the micro-batch runs: if that has to run again, it
gets the same records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.errors import ConfigError
from penstock.spark.source.share.offset_ranges import OffsetRanges, parse_ranges
from penstock.types import TopicPartition, Uuid, parse_uuid, uuid_text

_GROUP: Final = "shareGroup"
VERSION: Final = 2
"""Version of the JSON. The first had neither this number nor topic ids; its readers ignore both."""


@dataclass(frozen=True, slots=True)
class SparkShareOffset:
    """The end of a micro-batch, and its records."""

    group: str
    batch: int = 0
    """Makes an offset differ from the previous one if the same records are delivered again: Spark
    sees new records only by a new offset.
    """
    records: Mapping[TopicPartition, OffsetRanges] = field(default_factory=dict)
    ids: Mapping[str, Uuid] = field(default_factory=dict)
    """Topic ids: a topic may be recreated before the batch ends. Empty in an older checkpoint."""

    def as_json(self) -> dict[str, Any]:
        nested: dict[str, dict[str, str]] = {}
        for each in sorted(self.records):
            nested.setdefault(each.topic, {})[str(each.partition)] = str(self.records[each])
        return {
            _GROUP: self.group,
            "version": VERSION,
            "batch": self.batch,
            "records": nested,
            "topicIds": {name: uuid_text(self.ids[name]) for name in sorted(self.ids)},
        }


def share_offset(nested: Mapping[str, Any], group: str) -> SparkShareOffset:
    """Read a checkpoint's offset; raises `ConfigError` if it belongs to another group."""
    if not isinstance(nested.get(_GROUP), str):
        raise ConfigError(
            "the checkpoint is of a stream without option shareGroup; use another checkpoint"
        )
    if nested[_GROUP] != group:
        raise ConfigError(
            f"the checkpoint is of share group {nested[_GROUP]}, and option shareGroup is {group}; "
            "use another checkpoint"
        )
    if nested.get("version", 1) > VERSION:
        raise ConfigError(
            f"the checkpoint of share group {group} was written by a later version of Penstock"
        )
    records = {
        TopicPartition(topic, int(index)): parse_ranges(text)
        for topic, parts in nested["records"].items()
        for index, text in parts.items()
    }
    ids = {name: parse_uuid(text) for name, text in nested.get("topicIds", {}).items()}
    return SparkShareOffset(group, nested["batch"], records, ids)
