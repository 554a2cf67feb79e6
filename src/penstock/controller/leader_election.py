"""The election of a partition's leader. Pure.

The leader is the first live replica of the assignment that is in the ISR. A replica outside the ISR
leads only where the topic allows an unclean election: acknowledged records may be lost then.
"""

from collections.abc import Container
from typing import NamedTuple

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import PartitionRegistration
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId


class ElectionNotNeeded(KafkaError):
    """The partition already has the leader that the election would choose."""

    code = ErrorCode.ELECTION_NOT_NEEDED


class PreferredLeaderNotAvailable(KafkaError):
    """The preferred replica is down or not in sync."""

    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class EligibleLeadersNotAvailable(KafkaError):
    """No eligible replica is alive."""

    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class Elected(NamedTuple):
    """The outcome of an election. Without a leader, the ISR keeps its last members."""

    leader: BrokerId
    isr: tuple[BrokerId, ...]
    unclean: bool = False


def elected(
    partition: PartitionRegistration,
    live: Container[BrokerId],
    *,
    allow_unclean: bool,
    unclean_shutdown: Container[BrokerId] = (),
) -> Elected:
    """The leader and the ISR of a partition while only the `live` brokers are up.

    A broker after an unclean shutdown (its machine crashed, or its log was found damaged) may lack
    records that another in-sync replica has. So it leads only once all in-sync replicas are back
    and all of them had an unclean shutdown. Where an unclean election is allowed, it goes before a
    replica that is out of sync, which certainly lacks records. In any case such brokers leave the
    ISR, and rejoin it once they have caught up with the new leader.
    """
    alive = [each for each in partition.replicas if each in live]
    isr = tuple(each for each in partition.isr if each in live)
    if partition.leader in isr:
        return Elected(partition.leader, isr)
    in_sync = [each for each in alive if each in isr]
    for broker in in_sync:
        if broker not in unclean_shutdown:
            return Elected(broker, tuple(each for each in isr if each not in unclean_shutdown))
    if in_sync and len(isr) == len(partition.isr):
        return Elected(in_sync[0], (in_sync[0],))
    if allow_unclean and alive:
        leader = (in_sync or alive)[0]
        return Elected(leader, (leader,), unclean=True)
    return Elected(NO_LEADER, partition.isr)


def first_elected(replicas: tuple[BrokerId, ...], live: Container[BrokerId]) -> Elected | None:
    """The leader of a new partition: its first live replica. None while all are down."""
    alive = tuple(each for each in replicas if each in live)
    return Elected(alive[0], alive) if alive else None


def preferred(
    partition: PartitionRegistration,
    live: Container[BrokerId],
    unclean_shutdown: Container[BrokerId] = (),
) -> Elected:
    """The preferred (first) replica as leader, so that leaders are spread as planned.

    In a partition without a leader, it may be in the ISR from before its unclean shutdown, and lack
    records.
    """
    wanted = partition.replicas[0]
    if partition.leader == wanted:
        raise ElectionNotNeeded("Leader election not needed for topic partition.")
    if wanted not in live or wanted not in partition.isr:
        raise PreferredLeaderNotAvailable(f"broker {wanted} is down or not in sync")
    if partition.leader == NO_LEADER and wanted in unclean_shutdown:
        raise PreferredLeaderNotAvailable(
            f"broker {wanted} had an unclean shutdown and may lack records"
        )
    return Elected(wanted, partition.isr)


def forced(
    partition: PartitionRegistration,
    live: Container[BrokerId],
    live_or_shutting_down: Container[BrokerId],
    unclean_shutdown: Container[BrokerId] = (),
) -> Elected:
    """A requested unclean election, for a partition without a leader.

    A leader that is shutting down leads until it is gone: it has records that others lack.
    """
    if partition.leader in live_or_shutting_down:
        raise ElectionNotNeeded("Leader election not needed for topic partition.")
    outcome = elected(partition, live, allow_unclean=True, unclean_shutdown=unclean_shutdown)
    if outcome.leader == NO_LEADER:
        raise EligibleLeadersNotAvailable("no replica is alive")
    return outcome
