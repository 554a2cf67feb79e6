"""Decides which part of a log is dirty, whether to clean it, and which log is dirtiest. Pure."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from penstock.config.topic import TopicConfig
from penstock.config.value import LONG_MAX

Key = TypeVar("Key")


class WeighedSegment(Protocol):
    """A segment as compaction weighs it. Its times may have to be read from the disk."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def first_ms(self) -> int:
        """The timestamp of its first batch; -1 when unknown."""

    @property
    def newest_ms(self) -> int: ...


class SegmentAge(msgspec.Struct, frozen=True):
    """A segment whose times are known."""

    base_offset: int
    size_bytes: int
    first_ms: int
    newest_ms: int


class LogState(msgspec.Struct, frozen=True):
    """A log at a moment; the last of `segments` is the active one.

    `cleaned_to` is its entry in `cleaner-offset-checkpoint`, if it has one.
    """

    segments: Sequence[WeighedSegment]
    log_start_offset: int
    last_stable_offset: int
    log_end_offset: int
    recovery_point: int
    cleaned_to: int | None


class DirtyPart(msgspec.Struct, frozen=True):
    """The offsets `[first_dirty, first_uncleanable)` can be cleaned; those before are clean."""

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    dirty_bytes: int
    overdue: bool

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def dirty_part(log: LogState, config: TopicConfig, now_ms: int) -> DirtyPart:
    """The part of `log` that may be cleaned now; whole segments only, never the active one.

    Nothing past the last stable offset: an open transaction may still abort, and an offset past the
    high watermark may still be truncated. Nothing past the recovery point: a crash may lose the
    newer value there after the older one was removed.
    """
    first_dirty = log.cleaned_to if log.cleaned_to is not None else log.log_start_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        # Records up to there were deleted, or truncated: the checkpoint is out of date.
        first_dirty = log.log_start_offset
    end = _segment_of(log.segments, min(log.last_stable_offset, log.recovery_point))
    lag_ms = config.min_compaction_lag_ms
    for number in range(_segment_of(log.segments, first_dirty), end):
        # Without a lag, timestamps in the future do not delay compaction either.
        if lag_ms > 0 and now_ms - log.segments[number].newest_ms < lag_ms:
            end = number
            break
    first_uncleanable = log.segments[end].base_offset
    first_dirty = min(first_dirty, first_uncleanable)
    dirty = log.segments[_segment_of(log.segments, first_dirty) : end]
    clean = log.segments[: end - len(dirty)]
    overdue = False
    if config.max_compaction_lag_ms < LONG_MAX:
        known = (first_ms for each in dirty if (first_ms := each.first_ms) >= 0)
        overdue = now_ms - min(known, default=now_ms) > config.max_compaction_lag_ms
    return DirtyPart(
        first_dirty,
        first_uncleanable,
        sum(each.size_bytes for each in clean),
        sum(each.size_bytes for each in dirty),
        overdue=overdue,
    )


def is_worth_cleaning(part: DirtyPart, config: TopicConfig) -> bool:
    return part.dirty_bytes > 0 and (part.overdue or part.ratio > config.min_cleanable_dirty_ratio)


def dirtiest(logs: Mapping[Key, tuple[DirtyPart, TopicConfig]]) -> Key | None:
    """The log to clean next: of those worth it, the one with the largest dirty share."""
    worth = [log for log, (part, config) in logs.items() if is_worth_cleaning(part, config)]
    return max(worth, key=lambda log: logs[log][0].ratio, default=None)


def _segment_of(segments: Sequence[WeighedSegment], offset: int) -> int:
    """The index of the segment that has `offset`; the first one for all offsets before it."""
    return max(bisect_right(segments, offset, key=lambda each: each.base_offset) - 1, 0)
