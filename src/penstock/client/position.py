"""Positions in a topic as users write them: `beginning`, `-10`, `@-1h`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import NamedTuple

from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST, LATEST, IsolationLevel
from penstock.client.offsets import list_offsets
from penstock.types import Offset, TopicPartition

UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Since(Enum):
    """The reference point of a position."""

    START = auto()
    FIRST_RECORD = auto()
    END = auto()
    ZERO = auto()
    EPOCH = auto()


@dataclass(frozen=True, slots=True)
class Position:
    """A number of records; of milliseconds for `EPOCH` and `FIRST_RECORD`."""

    since: Since
    number: int = 0


BEGINNING, END = Position(Since.START), Position(Since.END)


def parse_position(text: str, now_ms: int) -> Position:
    """Raises `ValueError` if the text is not a position."""
    named = {"beginning": BEGINNING, "start": BEGINNING, "earliest": BEGINNING}
    named |= {"end": END, "latest": END}
    if text in named:
        return named[text]
    if text.startswith("@"):
        return Position(Since.EPOCH, parse_time(text[1:], now_ms))
    if later := re.fullmatch(r"\+([0-9]{1,12})(ms|s|m|h|d)", text):
        return Position(Since.FIRST_RECORD, int(later[1]) * UNITS_MS[later[2]])
    if re.fullmatch(r"-[0-9]{1,12}(ms|s|m|h|d)", text):
        return Position(Since.EPOCH, parse_time(text, now_ms))
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f"{text!r} is not an offset: beginning, end, N, +N, -N, -2h, +2h or @TIME")
    since = {"+": Since.START, "-": Since.END}.get(text[0], Since.ZERO)
    return Position(since, int(text))


def parse_time(text: str, now_ms: int) -> int:
    """Milliseconds since 1970, ISO-8601 (UTC by default), `-1h` before now, or `+1h` after."""
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    if away := re.fullmatch(r"([+-][0-9]{1,12})(ms|s|m|h|d)", text):
        time_ms = now_ms + int(away[1]) * UNITS_MS[away[2]]
    else:
        return iso_ms(text)
    return _since_1970(time_ms, text)


def iso_ms(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: ms since 1970, ISO-8601 or -1h") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return _since_1970(round(time.timestamp() * 1000), text)


def _since_1970(time_ms: int, text: str) -> int:
    """Refuse negative times: brokers give them other meanings, such as -1 for the end."""
    if time_ms < 0:
        raise ValueError(f"{text!r} is before 1970, which Kafka does not support")
    return time_ms


class Found(NamedTuple):
    """The offset that a position names, and the nearest one that the partition has."""

    wanted: int
    offset: Offset


async def offsets_at(
    client: Client,
    partitions: Sequence[TopicPartition],
    position: Position,
    isolation: IsolationLevel,
) -> dict[TopicPartition, Offset]:
    """The offset of the position in each partition, within the partition's range."""
    found = await find_offsets(client, partitions, position, isolation)
    return {each: at.offset for each, at in found.items()}


async def find_offsets(
    client: Client,
    partitions: Sequence[TopicPartition],
    position: Position,
    isolation: IsolationLevel,
) -> dict[TopicPartition, Found]:
    async def listed_at(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        found = await list_offsets(client, wanted, isolation=isolation)
        return {tp: each.offset for tp, each in found.items()}

    async def listed(timestamp: int) -> dict[TopicPartition, Offset]:
        return await listed_at(dict.fromkeys(partitions, timestamp))

    starts, ends = await listed(EARLIEST), await listed(LATEST)
    wanted: dict[TopicPartition, int] = {}
    match position.since:
        case Since.START:
            wanted |= {each: starts[each] + position.number for each in partitions}
        case Since.END:
            wanted |= {each: ends[each] + position.number for each in partitions}
        case Since.ZERO:
            wanted |= dict.fromkeys(partitions, position.number)
        case Since.EPOCH | Since.FIRST_RECORD:
            times = dict.fromkeys(partitions, position.number)
            if position.since is Since.FIRST_RECORD:
                first = await list_offsets(client, dict.fromkeys(partitions, 0))
                times = {tp: max(0, each.timestamp) + position.number for tp, each in first.items()}
            # -1: no record at or after that time.
            found = await listed_at(times)
            wanted |= {each: ends[each] if at < 0 else at for each, at in found.items()}
    return {
        each: Found(at, Offset(min(max(at, starts[each]), ends[each])))
        for each, at in wanted.items()
    }
