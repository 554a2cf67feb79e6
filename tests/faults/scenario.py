"""A fault under load, from a new topic to the verdict."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from faults.catalog import Fault
from faults.checker import violations
from faults.history import History
from faults.load import BURST, PARTITIONS, Load, read_all
from faults.stage import Stage, wait_until_identical
from faults.violation import Violation
from faults.witness import Beside

SOME = 100
Clients = Callable[[str, str], Beside]
"""Makes the clients beside the load, for a bootstrap address and a topic."""


class Survived(NamedTuple):
    """The result of a fault that the cluster survived."""

    acknowledged: int
    transactions: int
    longest_gap_s: float


class BrokenPromiseError(AssertionError):
    """A promise was broken: what, and the whole history."""

    def __init__(self, found: list[Violation], history: History) -> None:
        super().__init__(f"{len(found)} violations, the first are {found[:5]}")
        self.history = history


def survives(
    stage: Stage, fault: Fault, kind: Clients | None = None, *, burst: int = BURST, more: int = SOME
) -> Survived:
    """Fails if a promise was broken, or if the cluster did not heal in time.

    With `kind`, such clients are witnesses. After the fault at least `more` records are
    written.
    """
    topic = stage.new_topic()
    bootstrap = stage.brokers.bootstrap
    stage.wait_until_healed()
    with ExitStack() as witnessed:
        witness: Beside | None = None
        if kind is not None:
            witness = witnessed.enter_context(kind(bootstrap, topic))
        with Load(bootstrap, topic, burst=burst) as load:
            load.wait_for_acks(SOME)
            load.wait_for_commit()
            fault(stage, load)
            stage.wait_until_healed()
            load.wait_for_acks(more)
            load.wait_for_commit()
            if witness is not None:
                witness.wait_for_acks(SOME)
                witness.stop_writing()
        wait_until_identical(stage.brokers, topic)
        load.history.final = read_all(bootstrap, topic)
        if witness is not None:
            witness.wait_until_drained(load.history.final)
            witness.tell(load.history)
    outcomes = Counter(each.outcome for each in load.history.transactions)
    gap_s = load.longest_gap_s()
    print(f"{len(load.acked_s)} acknowledged, longest gap {gap_s:.2f} s, {dict(outcomes)}")
    found = violations(load.history)
    if found:
        raise BrokenPromiseError(found, load.history)
    acknowledged = sum(
        each.offset is not None for sent in load.history.sent.values() for each in sent
    )
    acknowledged += outcomes["committed"] * PARTITIONS
    return Survived(acknowledged, sum(outcomes.values()), gap_s)
