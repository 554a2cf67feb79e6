"""Parses where a reset moves the offsets of a group."""

import csv
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from penstock.client.group_reset import Target
from penstock.client.position import Position, Since, parse_position
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.types import TopicPartition

_DURATION = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)


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
    """Milliseconds of `90m`, `2h`, or ISO-8601 such as `P1DT2H`."""
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
    if short := re.fullmatch(r"(\d{1,12})(ms|s|m|h|d)", text):
        return int(short[1]) * units[short[2]]
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {k: v for k, v in found.groupdict().items() if v}
    if not parts:
        raise ConfigError(f"--by-duration {text}: must be like 2h, 90m or PT2H30M")
    return sum(round(Decimal(number) * units[unit]) for unit, number in parts.items())


def read_offsets(path: Path, group: str) -> dict[TopicPartition, int]:
    """Read lines of `topic,partition,offset`, as kafka-consumer-groups exports them. A first line
    without numbers is a header.

    With four fields the first is the group, as in an export of several groups; lines of other
    groups are ignored.
    """
    found: dict[TopicPartition, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"--from-file {path}: {reason}") from None
    for number, fields in enumerate(csv.reader(lines), 1):
        cells = [each.strip().strip('"') for each in fields]
        if not any(cells) or (number == 1 and not any(map(_is_number, cells[-2:]))):
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


def _is_number(cell: str) -> bool:
    return cell.removeprefix("-").isdigit()


def since(duration: str) -> Target:
    """The position as of that long ago. A time before 1970 becomes 0, the beginning of the log,
    because negative timestamps are special values.
    """
    return Target(Position(Since.EPOCH, max(SystemClock().now_ms() - duration_ms(duration), 0)))
