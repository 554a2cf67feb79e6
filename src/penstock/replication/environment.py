"""What a partition's leader asks of the broker around it."""

from collections.abc import Callable

from msgspec import Struct

from penstock.clock import SystemClock
from penstock.replication.proposal import IsrProposal
from penstock.types import TopicPartition

LAG_TIME_MAX_MS = 30_000


class NoController(Exception):
    """A proposal where no broker but this one exists: a bug."""


def _nobody(proposal: IsrProposal) -> None:
    raise NoController(str(proposal))


class Environment(Struct, frozen=True):
    """Handed in by the composition root; the defaults are those of a broker alone."""

    monotonic_ms: Callable[[], int] = SystemClock().monotonic_ms
    """Lag is measured by it: a wall clock that jumps would empty every in-sync set."""
    lag_time_max_ms: Callable[[], int] = lambda: LAG_TIME_MAX_MS
    is_eligible: Callable[[int, int], bool] = lambda _broker, _broker_epoch: True
    """Whether the broker lives, and in the life of this epoch as far as can be known here. The
    controller, which knows the epochs of all, looks again (KIP-903)."""
    propose: Callable[[IsrProposal], object] = _nobody
    """Send it to the controller; `Partition.settle` hears what came of it. Paces retries."""
    changed: Callable[[TopicPartition], object] = lambda _where: None
    """Something that requests may wait for has moved."""


ALONE = Environment()
