"""The parts of the broker that a partition uses."""

from collections.abc import Callable, Container, Iterable

from msgspec import Struct, field

from penstock.clock import SystemClock
from penstock.log.partition_log import PartitionLog
from penstock.replication.proposal import IsrProposal
from penstock.types import TopicPartition

LAG_TIME_MAX_MS = 30_000


class NoController(Exception):
    """A bug: the only broker of a cluster proposed a change of an ISR."""


def _no_controller(proposal: IsrProposal) -> None:
    raise NoController(str(proposal))


class IsrCounts(Struct):
    """Changes of the in-sync sets of partitions led here, since the broker's start."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0
    """Proposals that the controller did not accept."""

    def changed(
        self, before: Container[int], after: Container[int], replicas: Iterable[int]
    ) -> None:
        """Count a confirmed change; a set may lose one member and gain another."""
        moved = [(each in before, each in after) for each in replicas]
        self.shrinks += (True, False) in moved
        self.expands += (False, True) in moved


class Environment(Struct, frozen=True):
    """Passed in by the composition root; the defaults are for a broker alone."""

    monotonic_ms: Callable[[], int] = SystemClock().monotonic_ms
    """Measures lag: a wall clock that jumps would empty every in-sync set."""
    lag_time_max_ms: Callable[[], int] = lambda: LAG_TIME_MAX_MS
    lag_max_messages: Callable[[], int | None] = lambda: None
    """How many records an in-sync follower may lag; None: only time counts."""
    is_eligible: Callable[[int, int], bool] = lambda _broker, _broker_epoch: True
    """Whether the broker is alive with this broker epoch, as far as is known here. The controller,
    which knows all epochs, checks again (KIP-903)."""
    propose: Callable[[IsrProposal], object] = _no_controller
    """Send to the controller, with backoff on retries; the result goes to `isr_proposals.settle`.
    """
    changed: Callable[[TopicPartition], object] = lambda _where: None
    """Called when something changed that requests may wait for."""
    flush: Callable[[PartitionLog], object] = lambda _log: None
    """Request a flush; `changed` is called when it has ended."""
    isr_counts: IsrCounts = field(default_factory=IsrCounts)


ALONE = Environment()
