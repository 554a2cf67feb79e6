"""Polls a cluster, so that pages and the REST API answer from memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.advice.cluster_checks import cluster_findings
from penstock.advice.finding import Finding, Level, Problems
from penstock.advice.remembered import Remembered
from penstock.advice.snapshot import ClusterSnapshot, GroupState, cluster_snapshot, led
from penstock.client.cluster import Client
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.clock import Clock
from penstock.console.history import KEPT, Lag, LagHistory, Point
from penstock.console.mask import Masks
from penstock.console.timeline import Event, events
from penstock.errors import KafkaError
from penstock.record_view.registry import SchemaRegistry
from penstock.types import TopicPartition

EVERY_S = 5.0
REST_S = 1.0
"""The shortest pause between looks, when a look takes nearly as long as `EVERY_S`."""
EVENTS = 500
"""The most events in the timeline."""
NO_ANSWER = "no_answer"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """A cluster at one moment; `rates` are records per second since the look before, by topic."""

    at_ms: int
    snapshot: ClusterSnapshot
    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    rates: Mapping[str, float]
    problems: tuple[Finding, ...]
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Bytes of each partition on its leader, where known."""
    byte_rates: Mapping[str, float] = field(default_factory=dict)
    """Growth of the leaders' logs in bytes per second, by topic."""


class ClusterWatch:
    """The last look, and charts of earlier ones. Use it only in the event loop."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        registry: SchemaRegistry | None = None,
        projects: Sequence[Path] = (),
        masks: Masks | None = None,
    ) -> None:
        self.client, self._clock = client, clock
        self.registry, self.projects = registry, tuple(projects)
        self.masks = masks or Masks()
        self.last: ClusterLook | None = None
        self.failure: str | None = None
        """Why the last look failed; None if it succeeded."""
        self._failed_ms = 0
        self.throughput: deque[Point] = deque(maxlen=KEPT)
        self.byte_throughput: deque[Point] = deque(maxlen=KEPT)
        self.timeline: deque[Event] = deque(maxlen=EVENTS)
        self.lags = LagHistory()
        self._memory = Remembered()
        self._problems = Problems()
        self.subjects: frozenset[str] = frozenset()
        """Optional features that the cluster uses; pages of others are hidden."""

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            began_ms = self._clock.monotonic_ms()
            try:
                await self.look()
            except KafkaError as error:
                logger.warning("the cluster does not answer: %s", error)
                self.failed(error)
            took_s = (self._clock.monotonic_ms() - began_ms) / 1000
            await asyncio.sleep(max(EVERY_S - took_s, REST_S))

    def failed(self, error: KafkaError) -> None:
        """Record a failed look: one timeline event per outage, and a problem in the last look until
        a look succeeds.
        """
        what = f"the cluster does not answer: {error}"
        if self.failure is None:
            self._failed_ms = self._clock.now_ms()
            self.timeline.append(Event(self._failed_ms, NO_ANSWER, what))
        self.failure = str(error)
        if self.last is not None:
            others = (each for each in self.last.problems if each.check != NO_ANSWER)
            found = no_answer(what, self._failed_ms)
            self.last = replace(self.last, problems=(found, *others))

    async def look_anew(self) -> None:
        """Look again after a change, with settings read anew."""
        self._memory.forget_settings()
        await self.look()

    async def look(self) -> None:
        now_ms = self._clock.now_ms()
        snapshot = await cluster_snapshot(self.client, now_ms, self._memory)
        partitions = led(snapshot.topics)
        starts = await list_offsets(self.client, dict.fromkeys(partitions, EARLIEST))
        ends: Mapping[TopicPartition, int] = snapshot.ends
        if partitions and not ends:  # the snapshot's request was refused: raise that error here
            listed = await list_offsets(self.client, dict.fromkeys(partitions, LATEST))
            ends = {tp: each.offset for tp, each in listed.items()}
        sizes = leader_sizes(snapshot)
        before, self.last = (
            self.last,
            ClusterLook(
                now_ms,
                snapshot,
                {tp: each.offset for tp, each in starts.items()},
                ends,
                rates(self.last, self.last.ends if self.last else {}, ends, now_ms),
                tuple(self._problems.seen(cluster_findings(snapshot), now_ms)),
                sizes,
                rates(self.last, self.last.sizes if self.last else {}, sizes, now_ms),
            ),
        )
        if self.failure is not None:
            self.timeline.append(Event(now_ms, "answers", "the cluster answers again"))
        self.failure = None
        self._remember(before, self.last)

    def _remember(self, before: ClusterLook | None, look: ClusterLook) -> None:
        self.throughput.append(Point(look.at_ms, sum(look.rates.values())))
        self.byte_throughput.append(Point(look.at_ms, sum(look.byte_rates.values())))
        if before is not None:
            self.timeline.extend(events(before.snapshot, look.snapshot, look.at_ms))
        self.lags.add(
            look.at_ms,
            (
                Lag(each.group.id, sum(each.lags.values()), lag_seconds(each, look.at_ms))
                for each in look.snapshot.groups
            ),
        )


def no_answer(what: str, since_ms: int) -> Finding:
    return Finding(
        Level.ERROR,
        NO_ANSWER,
        what,
        "clients may not reach it either; all else that is shown is of the last look",
        "see whether its brokers run, and their logs",
        since_ms=since_ms,
    )


def lag_seconds(state: GroupState, now_ms: int) -> float | None:
    """The age of the oldest unread record; 0 without lag, None if unknown."""
    if not any(state.lags.values()):
        return 0.0
    since_ms = state.unread_since_ms
    return None if since_ms is None else max(now_ms - since_ms, 0) / 1000


def leader_sizes(seen: ClusterSnapshot) -> dict[TopicPartition, int]:
    by_broker = {
        broker: {
            tp: replica.size
            for each in dirs
            for tp, replica in each.replicas.items()
            if not replica.is_future
        }
        for broker, dirs in seen.log_dirs.items()
    }
    found = {}
    for topic in seen.topics:
        for each in topic.partitions.values():
            tp = TopicPartition(topic.name, each.index)
            size = by_broker.get(each.leader, {}).get(tp)
            if size is not None:
                found[tp] = size
    return found


def rates(
    before: ClusterLook | None,
    then: Mapping[TopicPartition, int],
    now: Mapping[TopicPartition, int],
    now_ms: int,
) -> dict[str, float]:
    """Growth per second by topic. A decrease, as by retention, counts as zero."""
    found = dict.fromkeys((tp.topic for tp in now), 0.0)
    if before is None or now_ms <= before.at_ms:
        return found
    for tp, value in now.items():
        came = max(value - then.get(tp, value), 0)
        found[tp.topic] += came * 1000 / (now_ms - before.at_ms)
    return found
