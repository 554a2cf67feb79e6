"""Who leads a partition. Pure.

Leaders come from the ISR in the order of the assignment. Outside of it only where the topic allows
an unclean election: then whatever the lost replicas had acknowledged is gone.
"""

from collections.abc import Container
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import Partition
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId


class ElectionNotNeeded(KafkaError):
    """The partition has the leader that the election would give it."""

    code = ErrorCode.ELECTION_NOT_NEEDED


class PreferredLeaderNotAvailable(KafkaError):
    """The first replica is not alive, or not in sync."""

    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(KafkaError):
    """No replica that may lead is alive."""

    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class Elected(NamedTuple):
    """The outcome of an election; without a leader the ISR waits for its last members."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    unclean: bool = False


def elected(
    partition: Partition,
    live: Container[BrokerId],
    *,
    unclean: bool,
    doubtful: Container[BrokerId] = (),
) -> Elected:
    """The leader and the ISR of a partition, now that these brokers are alive and no others.

    A doubtful broker, whose machine went down under it or whose log was found damaged, may lack
    what another in-sync replica has: it leads only once all of them are back, and none is better.
    Where an unclean election is allowed it leads before a replica that is out of sync, which lacks
    records for sure. Whoever leads, doubtful ones come into the ISR again by what they have of its
    log.
    """
    alive = [each for each in partition.replicas if each in live]
    isr = tuple(each for each in partition.isr if each in live)
    if partition.leader in isr:
        return Elected(partition.leader, isr)
    in_sync = [each for each in alive if each in isr]
    for broker in in_sync:
        if broker not in doubtful:
            return Elected(broker, tuple(each for each in isr if each not in doubtful))
    if in_sync and len(isr) == len(partition.isr):
        return Elected(in_sync[0], (in_sync[0],))
    if unclean and alive:
        leader = (in_sync or alive)[0]
        return Elected(leader, (leader,), unclean=True)
    return Elected(NO_LEADER, partition.isr)


def first_elected(replicas: tuple[BrokerId, ...], live: Container[BrokerId]) -> Elected | None:
    """The leader of a new partition: its first live replica. None while all are down."""
    alive = tuple(each for each in replicas if each in live)
    return Elected(alive[0], alive) if alive else None


def preferred(partition: Partition, live: Container[BrokerId]) -> Elected:
    """Leadership given back to the first replica, so that it is spread as it was planned."""
    wanted = partition.replicas[0]
    if partition.leader == wanted:
        raise ElectionNotNeeded("Leader election not needed for topic partition.")
    if wanted not in live or wanted not in partition.isr:
        raise PreferredLeaderNotAvailable(f"broker {wanted} is down or not in sync")
    return Elected(wanted, partition.isr)


def forced(partition: Partition, live: Container[BrokerId]) -> Elected:
    """An unclean election that somebody asked for, if the partition has no leader."""
    if partition.leader in live:
        raise ElectionNotNeeded("Leader election not needed for topic partition.")
    outcome = elected(partition, live, unclean=True)
    if outcome.leader == NO_LEADER:
        raise EligibleLeadersNotAvailable("no replica is alive")
    return outcome
