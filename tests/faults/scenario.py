"""A fault under load, from a new topic to the verdict."""

from collections import Counter

from faults.catalog import Fault
from faults.checker import violations
from faults.load import Load, read_all
from faults.stage import Stage, wait_until_identical

SOME = 100


def survives(stage: Stage, fault: Fault) -> None:
    """Fails if a promise was broken, or if the cluster did not heal in time."""
    topic = stage.new_topic()
    stage.wait_until_healed()
    with Load(stage.brokers.bootstrap, topic) as load:
        load.wait_for_acks(SOME)
        load.wait_for_commit()
        fault(stage, load)
        stage.wait_until_healed()
        load.wait_for_acks(SOME)
        load.wait_for_commit()
    wait_until_identical(stage.brokers, topic)
    load.history.final = read_all(stage.brokers.bootstrap, topic)
    outcomes = Counter(each.outcome for each in load.history.transactions)
    gap_s = load.longest_gap_s()
    print(f"{len(load.acked_s)} acknowledged, longest gap {gap_s:.2f} s, {dict(outcomes)}")
    assert violations(load.history) == []
