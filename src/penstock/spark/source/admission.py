"""How many offsets a micro-batch takes: a maximum, and a minimum to wait for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.types import Offset, TopicPartition

Positions = Mapping[TopicPartition, Offset]


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """`maxOffsetsPerTrigger`, `minOffsetsPerTrigger` and `maxTriggerDelay`; None: not set."""

    at_most: int | None = None
    at_least: int | None = None
    delay_ms: int = 15 * 60 * 1000
    """After this time a batch runs, however few records there are."""


def available(start: Positions, latest: Positions) -> int:
    return sum(max(end - start.get(each, end), 0) for each, end in latest.items())


def waits(limits: TriggerLimits, start: Positions, latest: Positions, waited_ms: float) -> bool:
    """Whether a batch should wait for more records; never longer than the delay."""
    if limits.at_least is None or waited_ms >= limits.delay_ms:
        return False
    return available(start, latest) < limits.at_least


def limited(at_most: int, start: Positions, latest: Positions) -> dict[TopicPartition, Offset]:
    """The end of a batch of about `at_most` offsets, divided in proportion to the partitions' lag.

    A share below one is rounded up, else a small partition beside large ones would starve.
    """
    total = available(start, latest)
    if total <= at_most:
        return dict(latest)
    ends = {}
    for each, end in latest.items():
        begin = start.get(each, end)
        share = at_most * max(end - begin, 0) / total
        taken = math.ceil(share) if share < 1 else math.floor(share)
        ends[each] = Offset(min(begin + taken, end)) if end > begin else end
    return ends
