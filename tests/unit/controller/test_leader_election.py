"""Leader elections: from the ISR, preferred, or unclean."""

import pytest

from penstock.controller.leader_election import (
    Elected,
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    PreferredLeaderNotAvailable,
    elected,
    first_elected,
    forced,
    preferred,
)
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, LeaderEpoch


def brokers(*ids: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, ids))


def partition(
    replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = NO_LEADER
) -> PartitionRegistration:
    return PartitionRegistration(
        brokers(*replicas), brokers(*isr), BrokerId(leader), LeaderEpoch(0)
    )


@pytest.mark.row("A077", "A083")
@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "live", "unclean", "outcome"),
    [
        # The assignment's order decides, not the ISR's.
        ((1, 2, 3), (3, 2, 1), 1, (2, 3), False, (2, (3, 2), False)),
        # A live leader stays, even if it is not the preferred one.
        ((1, 2, 3), (1, 2, 3), 2, (1, 2), False, (2, (1, 2), False)),
        # No replica outside the ISR is elected,
        ((1, 2, 3), (1,), 1, (2, 3), False, (-1, (1,), False)),
        # unless the topic allows it.
        ((1, 2, 3), (1,), 1, (2, 3), True, (2, (2,), True)),
        # No unclean election while a clean one is possible.
        ((1, 2, 3), (3,), 1, (2, 3), True, (3, (3,), False)),
        ((1, 2, 3), (1, 2), 1, (), True, (-1, (1, 2), False)),
    ],
)
def test_leaders_come_from_the_isr(
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    leader: int,
    live: tuple[int, ...],
    unclean: bool,
    outcome: tuple[int, tuple[int, ...], bool],
) -> None:
    assert (
        elected(partition(replicas, isr, leader), brokers(*live), allow_unclean=unclean) == outcome
    )


def test_an_in_sync_replica_after_an_unclean_shutdown_leads_before_one_that_is_out_of_sync() -> (
    None
):
    """In an unclean election: the first may lack records, the other certainly does."""
    known = partition((1, 2, 3), (2, 3))
    crashed = brokers(2)
    assert elected(known, brokers(1, 2), allow_unclean=True, unclean_shutdown=crashed) == (
        2,
        (2,),
        True,
    )
    assert elected(known, brokers(1, 2), allow_unclean=False, unclean_shutdown=crashed) == (
        -1,
        (2, 3),
        False,
    )


def test_after_unclean_shutdowns_of_all_in_sync_replicas_the_first_leads_alone() -> None:
    """Once all of them are back: each may have records that the other lacks."""
    known = partition((1, 2, 3), (3, 2))
    crashed = brokers(2, 3)
    outcome = elected(known, brokers(1, 2, 3), allow_unclean=False, unclean_shutdown=crashed)
    assert outcome == Elected(BrokerId(2), brokers(2))


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    assert first_elected(brokers(1, 2, 3), brokers(2, 3)) == Elected(BrokerId(2), brokers(2, 3))
    assert first_elected(brokers(1, 2, 3), brokers(4)) is None


def test_a_preferred_election_gives_leadership_back() -> None:
    assert preferred(partition((1, 2), (2, 1), 2), brokers(1, 2)) == Elected(
        BrokerId(1), brokers(2, 1)
    )


def test_a_preferred_leader_must_be_alive_and_in_sync() -> None:
    with pytest.raises(ElectionNotNeeded):
        preferred(partition((1, 2), (1, 2), 1), brokers(1, 2))
    with pytest.raises(PreferredLeaderNotAvailable):
        preferred(partition((1, 2), (2,), 2), brokers(1, 2))
    with pytest.raises(PreferredLeaderNotAvailable):
        preferred(partition((1, 2), (1, 2), 2), brokers(2))


def test_a_preferred_leader_after_an_unclean_shutdown_needs_a_leader_to_catch_up_with() -> None:
    """Without a leader it may be in the ISR and lack records; under a leader it has them."""
    both, crashed = brokers(1, 2), brokers(1)
    with pytest.raises(PreferredLeaderNotAvailable, match="unclean shutdown"):
        preferred(partition((1, 2), (1, 2)), both, crashed)
    assert preferred(partition((1, 2), (1, 2)), both, brokers(2)).leader == 1
    assert preferred(partition((1, 2), (1, 2), 2), both, crashed).leader == 1


def test_an_unclean_election_on_request_needs_a_partition_without_leader() -> None:
    with pytest.raises(ElectionNotNeeded):
        forced(partition((1, 2), (1,), 1), brokers(1, 2), brokers(1, 2))
    with pytest.raises(ElectionNotNeeded):  # broker 1 is shutting down, and leads until then
        forced(partition((1, 2), (1,), 1), brokers(2), brokers(1, 2))
    assert forced(partition((1, 2), (1,)), brokers(2), brokers(2)) == Elected(
        BrokerId(2), brokers(2), unclean=True
    )
    with pytest.raises(EligibleLeadersNotAvailable):
        forced(partition((1, 2), (1,)), brokers(3), brokers(3))


def test_an_unclean_election_on_request_leaves_only_the_new_leader_in_sync() -> None:
    """Replicas 1 and 2 have lost power; each may have records that the other lacks."""
    both = brokers(1, 2)
    outcome = forced(partition((1, 2, 3), (1, 2, 3)), both, both, both)
    assert outcome == Elected(BrokerId(1), brokers(1), unclean=True)
