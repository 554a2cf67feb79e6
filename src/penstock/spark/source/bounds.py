"""Where a read starts and ends: earliest, latest, given offsets, or timestamps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.client.listing import EARLIEST, LATEST
from penstock.errors import ConfigError
from penstock.spark.options import Options
from penstock.spark.source.positions import parse_numbers
from penstock.types import Offset, TopicPartition

NOT_FOUND: Final = -1
"""ListOffsets' response if no record is at or after the timestamp."""


@dataclass(frozen=True, slots=True)
class LogEdge:
    """The same edge of every partition's log: `EARLIEST` or `LATEST`."""

    which: int


@dataclass(frozen=True, slots=True)
class GivenOffsets:
    """An offset for each partition, or `EARLIEST` or `LATEST`."""

    option: str
    by_partition: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class GivenTimes:
    """The first record at or after a time in ms: one for all partitions, or one for each."""

    option: str
    for_all: int | None
    by_partition: Mapping[TopicPartition, int]
    latest_if_none: bool
    """Otherwise a partition without such a record is an error."""


Bound: TypeAlias = LogEdge | GivenOffsets | GivenTimes
FROM_EARLIEST, FROM_LATEST = LogEdge(EARLIEST), LogEdge(LATEST)


def read_start(options: Options, default: LogEdge) -> Bound:
    strategy = options.one_of("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    return _read(options, "starting", default, latest_if_none=strategy == "latest")


def read_end(options: Options) -> Bound:
    return _read(options, "ending", FROM_LATEST, latest_if_none=True)


def check_batch(start: Bound, end: Bound) -> None:
    """A batch that starts at the latest or ends at the earliest offset is a mistake."""
    if start == FROM_LATEST:
        raise ConfigError("option startingOffsets cannot be latest in a batch read")
    if end == FROM_EARLIEST:
        raise ConfigError("option endingOffsets cannot be earliest in a batch read")
    for bound, wrong, word in ((start, LATEST, "-1 (latest)"), (end, EARLIEST, "-2 (earliest)")):
        if isinstance(bound, GivenOffsets):
            for tp, offset in bound.by_partition.items():
                if offset == wrong:
                    raise ConfigError(
                        f"option {bound.option}: {tp} cannot be {word} in a batch read"
                    )


def timestamps_to_list(
    bound: Bound, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The timestamps for ListOffsets; partitions with a given offset are left out."""
    match bound:
        case LogEdge(which):
            return dict.fromkeys(partitions, which)
        case GivenOffsets(option, given):
            _check_covered(option, given, list(partitions))
            return {each: offset for each, offset in given.items() if offset < 0}
        case GivenTimes(option, for_all, given):
            if for_all is not None:
                return dict.fromkeys(partitions, for_all)
            _check_covered(option, given, list(partitions))
            return dict(given)


def resolved_offsets(
    bound: Bound,
    found: Mapping[TopicPartition, Offset],
    latest: Mapping[TopicPartition, Offset],
) -> dict[TopicPartition, Offset]:
    """Every partition's offset, from ListOffsets' response; `latest` if it found no record."""
    match bound:
        case LogEdge():
            return dict(found)
        case GivenOffsets(_, given):
            return {each: found.get(each, Offset(offset)) for each, offset in given.items()}
        case GivenTimes(option, latest_if_none=latest_if_none):
            resolved = {}
            for each, offset in found.items():
                if offset == NOT_FOUND and not latest_if_none:
                    raise ConfigError(
                        f"option {option}: {each} has no record at or after that time; "
                        "set startingOffsetsByTimestampStrategy to latest to start at its end"
                    )
                resolved[each] = latest[each] if offset == NOT_FOUND else offset
            return resolved


def may_be_end(bound: Bound, topic_partition: TopicPartition) -> bool:
    """Whether the bound can mean the present end of this partition's log."""
    match bound:
        case LogEdge(which):
            return which == LATEST
        case GivenOffsets(_, given):
            return given.get(topic_partition) == LATEST
        case GivenTimes(latest_if_none=latest_if_none):
            return latest_if_none


def at_end(bound: Bound, found: Mapping[TopicPartition, Offset]) -> frozenset[TopicPartition]:
    """The partitions where the bound meant the present end of the log, by ListOffsets' response."""
    may_be = (each for each in found if may_be_end(bound, each))
    if isinstance(bound, GivenTimes):
        return frozenset(each for each in may_be if found[each] == NOT_FOUND)
    return frozenset(may_be)


def _read(options: Options, side: str, default: LogEdge, *, latest_if_none: bool) -> Bound:
    """Read one of three options: a time for all wins over times, and these win over offsets."""
    for_all, by_time = f"{side}Timestamp", f"{side}OffsetsByTimestamp"
    by_offset = f"{side}Offsets"
    if for_all in options:
        return GivenTimes(for_all, options.integer(for_all, 0), {}, latest_if_none)
    if by_time in options:
        times = parse_numbers(by_time, options.text(by_time), low=0)
        return GivenTimes(by_time, None, times, latest_if_none)
    text = options.text(by_offset)
    if by_offset not in options:
        return default
    if text.lower() in {"earliest", "latest"}:
        return FROM_EARLIEST if text.lower() == "earliest" else FROM_LATEST
    return GivenOffsets(by_offset, parse_numbers(by_offset, text, low=EARLIEST))


def _check_covered(
    option: str, given: Mapping[TopicPartition, int], partitions: list[TopicPartition]
) -> None:
    missing = sorted(set(partitions) - given.keys())
    foreign = sorted(given.keys() - set(partitions))
    if missing:
        raise ConfigError(
            f"option {option} must name every partition: {', '.join(map(str, missing))} missing"
            " (use -2 for earliest, -1 for latest)"
        )
    if foreign:
        raise ConfigError(f"option {option}: {', '.join(map(str, foreign))} is not subscribed")
