"""What a partition's leader asks of the broker around it."""

from collections.abc import Callable, Container, Iterable

from msgspec import Struct, field

from penstock.clock import SystemClock
from penstock.replication.proposal import IsrProposal
from penstock.types import TopicPartition

LAG_TIME_MAX_MS = 30_000


class NoController(Exception):
    """A proposal where no broker but this one exists: a bug."""


def _nobody(proposal: IsrProposal) -> None:
    raise NoController(str(proposal))


class IsrCounts(Struct):
    """How often in-sync sets of partitions led here have changed, since the broker's start."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0
    """Proposals that the controller did not take."""

    def changed(
        self, before: Container[int], after: Container[int], replicas: Iterable[int]
    ) -> None:
        """Count a change that the controller has confirmed; a set may lose one and gain another."""
        moved = [(each in before, each in after) for each in replicas]
        self.shrinks += (True, False) in moved
        self.expands += (False, True) in moved


class Environment(Struct, frozen=True):
    """Handed in by the composition root; the defaults are those of a broker alone."""

    monotonic_ms: Callable[[], int] = SystemClock().monotonic_ms
    """Lag is measured by it: a wall clock that jumps would empty every in-sync set."""
    lag_time_max_ms: Callable[[], int] = lambda: LAG_TIME_MAX_MS
    lag_max_messages: Callable[[], int | None] = lambda: None
    """How far behind a follower in sync may be; None: only time counts."""
    is_eligible: Callable[[int, int], bool] = lambda _broker, _broker_epoch: True
    """Whether the broker lives, and in the life of this epoch as far as can be known here. The
    controller, which knows the epochs of all, looks again (KIP-903)."""
    propose: Callable[[IsrProposal], object] = _nobody
    """Send it to the controller; `Partition.settle` hears what came of it. Paces retries."""
    changed: Callable[[TopicPartition], object] = lambda _where: None
    """Something that requests may wait for has moved."""
    isr_counts: IsrCounts = field(default_factory=IsrCounts)


ALONE = Environment()
