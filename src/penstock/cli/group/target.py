"""Where a reset moves the offsets of a group. Pure, but for what `Client` looks up."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from penstock.cli.position import Found, Position, Since, find_offsets, parse_position
from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.types import Offset, TopicPartition

_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.\d+)?S)?)?"
)


@dataclass(frozen=True, slots=True)
class Target:
    """One of: a position in each partition, a shift from the committed offset, given offsets."""

    position: Position | None = None
    shift: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None


class TargetType(click.ParamType[Target]):
    """A position, or `current`."""

    name = "position"

    def convert(self, value: Any, param: Any, ctx: Any) -> Target:
        if isinstance(value, Target):
            return value
        if value == "current":
            return Target(shift=0)
        try:
            return Target(parse_position(value, SystemClock().now_ms()))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def duration_ms(text: str) -> int:
    """`90m`, `2h`, or ISO-8601: `P1DT2H`."""
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    if short := re.fullmatch(r"(\d{1,12})(ms|s|m|h|d)", text):
        return int(short[1]) * units[short[2]]
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {k: v for k, v in found.groupdict().items() if v}
    if not parts:
        raise ConfigError(f"--by-duration {text}: must be like 2h, 90m or PT2H30M")
    return sum(int(number) * units[unit] for unit, number in parts.items())


def read_offsets(path: Path, group: str) -> dict[TopicPartition, int]:
    """Lines of `topic,partition,offset`, as kafka-consumer-groups exports; a header may precede.

    With four fields the first is the group, as in an export of several groups; lines of other
    groups do not count.
    """
    found: dict[TopicPartition, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"--from-file {path}: {reason}") from None
    for number, fields in enumerate(csv.reader(lines), 1):
        cells = [each.strip().strip('"') for each in fields]
        if not any(cells) or (number == 1 and not cells[-1].isdigit()):
            continue
        try:
            *of_group, topic, partition, offset = cells
            at = TopicPartition(topic, int(partition)), int(offset)
            if len(of_group) > 1:
                raise ValueError(of_group)
        except ValueError:
            raise ConfigError(
                f"--from-file {path}: line {number} is not topic,partition,offset"
            ) from None
        if of_group in ([], [group]):
            found[at[0]] = at[1]
    if not found:
        raise ConfigError(f"--from-file {path}: has no offsets of group {group}")
    return found


async def offsets_of(
    client: Client,
    partitions: Sequence[TopicPartition],
    target: Target,
    before: Mapping[TopicPartition, Offset],
) -> dict[TopicPartition, Found]:
    """The new offset of each partition, within the partition's range."""
    if target.position is not None:
        return await find_offsets(
            client, partitions, target.position, IsolationLevel.READ_UNCOMMITTED
        )
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    found = {}
    for each in partitions:
        low, high = starts[each].offset, ends[each].offset
        if target.offsets is not None:
            wanted = target.offsets[each]
        else:  # from where it is; from the end, as a consumer would, if it is nowhere
            wanted = before.get(each, high) + (target.shift or 0)
        found[each] = Found(wanted, Offset(min(max(wanted, low), high)))
    return found


def since(duration: str) -> Target:
    return Target(Position(Since.EPOCH, SystemClock().now_ms() - duration_ms(duration)))
