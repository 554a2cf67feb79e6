"""`/metrics`, `/healthz` and `/readyz` of the delay service."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from penstock.clock import Clock, SystemClock
from penstock.http.health import healthz, readyz
from penstock.http.prometheus import Metric, MetricKind, Sample, labels, metrics
from penstock.http.server import Routes
from penstock.retry.counts import LATENESS_S, DelayCounts
from penstock.retry.partition import DelayPartition
from penstock.retry.service import DelayService
from penstock.retry.store.index import DueStoreUnavailable, StoreChanged

READY_S: Final = 60
"""How long a step may take: with a store or broker that hangs, the service is not ready."""


@dataclass(slots=True)
class DelayHealth:
    """The state of the running service; the counts survive restarts of the service."""

    counts: DelayCounts = field(default_factory=DelayCounts)
    clock: Clock = field(default_factory=SystemClock)
    service: DelayService | None = None
    store_is_up: bool = True
    found_routes: bool = False
    """Whether the cluster was reached."""
    stepped_ms: int = 0

    def reached(self) -> None:
        """The brokers answered; the store was not tried."""
        self.found_routes = True
        self.stepped_ms = self.clock.monotonic_ms()

    def stepped(self) -> None:
        self.reached()
        self.store_is_up = True

    def failed(self, error: BaseException) -> None:
        """The service restarts, perhaps because of its store."""
        self.counts.restarts += 1
        if isinstance(error, DueStoreUnavailable | StoreChanged):
            self.counts.store_failures += 1
        if isinstance(error, DueStoreUnavailable):
            self.store_is_up = False  # until it answers

    def is_working(self) -> bool:
        late_ms = self.clock.monotonic_ms() - self.stepped_ms
        return self.found_routes and late_ms < READY_S * 1000

    def routes(self) -> Routes:
        checks = {"store": lambda: self.store_is_up, "brokers": self.is_working}
        return {
            ("GET", "/healthz"): healthz,
            ("GET", "/readyz"): readyz(checks),
            ("GET", "/metrics"): metrics(self.table),
        }

    def table(self) -> Mapping[str, Metric]:
        counts, gauge, counter = self.counts, MetricKind.GAUGE, MetricKind.COUNTER
        return {
            "penstock_delay_store_up": Metric(
                gauge, "Whether the store of due times answered.", lambda: int(self.store_is_up)
            ),
            "penstock_delay_pending": Metric(
                gauge, "Records that wait, by topic.", lambda: _by_topic(self._pending())
            ),
            "penstock_delay_late_ms": Metric(
                gauge,
                "For how long the first record that is due waits, by topic.",
                lambda: _by_topic(self._late_ms()),
            ),
            "penstock_delay_refused_topics": Metric(
                gauge,
                "Topics that cannot be written: records wait for them.",
                lambda: 0 if self.service is None else len(self.service.waiting_for),
            ),
            "penstock_delay_moved_total": Metric(
                counter, "Records that reached their target.", lambda: _by_topic(counts.delivered)
            ),
            "penstock_delay_dead_letters_total": Metric(
                counter, "Records that became dead letters.", lambda: _by_topic(counts.dead)
            ),
            "penstock_delay_cancelled_total": Metric(
                counter, "Records that were cancelled.", lambda: _by_topic(counts.cancelled)
            ),
            "penstock_delay_postponed_total": Metric(
                counter,
                "Times that neither the target nor the dead letters took a record.",
                lambda: _by_topic(counts.postponed),
            ),
            "penstock_delay_restarts_total": Metric(
                counter, "Times that the service began again.", lambda: counts.restarts
            ),
            "penstock_delay_store_failures_total": Metric(
                counter, "Times that the store failed.", lambda: counts.store_failures
            ),
            "penstock_delay_lateness_seconds": Metric(
                MetricKind.HISTOGRAM,
                "From the due time to the end of the delivery.",
                self._lateness,
            ),
        }

    def _pending(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self._partitions():
            found[each.partition.topic] += each.progress.pending
        return found

    def _late_ms(self) -> Mapping[str, int]:
        now_ms, found = self.clock.now_ms(), dict[str, int]()
        for each in self._partitions():
            # The service's own entries are due at 0.
            due_ms = now_ms if not each.next_due_ms else each.next_due_ms
            late_ms = max(0, now_ms - due_ms)
            found[each.partition.topic] = max(found.get(each.partition.topic, 0), late_ms)
        return found

    def _partitions(self) -> Iterable[DelayPartition]:
        return () if self.service is None else self.service.partitions.values()

    def _lateness(self) -> Iterable[Sample]:
        total = 0
        for limit, count in zip((*LATENESS_S, "+Inf"), self.counts.lateness, strict=True):
            total += count
            yield Sample(total, labels(le=str(limit)), "_bucket")
        yield Sample(self.counts.lateness_sum_s, suffix="_sum")
        yield Sample(total, suffix="_count")


def _by_topic(counts: Mapping[str, int]) -> Iterable[Sample]:
    return [Sample(count, labels(topic=topic)) for topic, count in sorted(counts.items())]
