"""Share groups while leaders and coordinators fail: no record is lost, no accepted one is delivered
again, and each rejected one has one dead letter.
"""

import pytest

from simulation.share import FAULTS, members_and_faults, share_world
from simulation.share_locks import LOCKS, VICTIMS, kills_under_locks, locked_world
from simulation.world import Plan

STEPS = 20_000
SEEDS = (137, 136, 140, 141, 203)
"""The first four seeds each revealed former leaders that overwrote the state of the new one. The
last one revealed duplicate dead letters, which had another producer id each time.
"""


@pytest.mark.parametrize(
    "seed", [SEEDS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in SEEDS[1:])]
)
def test_acknowledgements_survive_leaders_and_coordinators(seed: int) -> None:
    steps = STEPS if seed == SEEDS[0] else 2 * STEPS
    history = share_world(Plan(seed, steps, faults=FAULTS)).run(members_and_faults)
    assert history.counts["accepted"] > 50, "nothing went right either"
    assert history.counts["dead letters"] > 5
    assert not [each for each in history.counts if each.startswith("traceback")]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_locks_survive_kills_of_leader_coordinator_and_member(seed: int) -> None:
    history = locked_world(Plan(seed)).run(kills_under_locks)
    for victim in set(VICTIMS):
        assert history.counts[f"{LOCKS} locks and a kill: {victim}"] == VICTIMS.count(victim)
    assert history.counts["accepted"] > len(VICTIMS) * LOCKS // 2
    assert not [each for each in history.counts if each.startswith("traceback")]
