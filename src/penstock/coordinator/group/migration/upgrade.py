"""A classic group becomes one of the consumer protocol, with its members and their shares."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import NO_HASH, Topics
from penstock.coordinator.group.consumer.member import (
    NOTHING,
    ClassicTerms,
    ConsumerMember,
    Share,
)
from penstock.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.embedded import CONSUMER, read_assignment, read_subscription
from penstock.coordinator.group.member import Member
from penstock.coordinator.group.migration.share import owned, share_by_name
from penstock.coordinator.group.refusal import GroupIdNotFound, RebalanceInProgress
from penstock.coordinator.group.state import State
from penstock.coordinator.outcome import Answer, answer
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

ALLOWED = {"upgrade", "bidirectional"}
"""The values of `group.consumer.migration.policy` with which groups are upgraded."""

STICKY = {"sticky", "cooperative-sticky"}
"""Strategies of the clients whose own data is what members had last, which the coordinator knows
better. librdkafka sends it back with the shares; Kafka takes it for a custom assignor's.
"""


def check(group: ClassicGroup, config: GroupConfig) -> None:
    """Refuse groups that must stay as they are. Clients know this error as `not a consumer group`,
    whatever is the matter; the text is for people.
    """
    if config.group_consumer_migration_policy not in ALLOWED:
        raise GroupIdNotFound(
            f"the members of {group.id} speak the classic protocol, and "
            "group.consumer.migration.policy does not allow an upgrade"
        )
    if group.protocol_type != CONSUMER:
        raise GroupIdNotFound(
            f"Cannot upgrade classic group {group.id} to consumer group because the group does not "
            "use the consumer embedded protocol."
        )
    if len(group.members) > config.group_consumer_max_size:
        raise GroupIdNotFound(f"{group.id} has more members than group.consumer.max.size")


def upgrade(turn: ConsumerTurn, classic: ClassicGroup) -> tuple[Answer, ...]:
    """Write the members, with what they have, into a group that is new; those who wait for the
    old one's next generation are told to join again.
    """
    name, topics = turn.group.id, turn.world.topics
    # A group that is still in its first rebalance has no generation yet.
    epoch = max(classic.generation, turn.group.epoch)
    members = [_member(each, epoch) for each in _with_shares(classic, topics)]
    for member in members:
        turn.write(member_record(name, member))
    # What was shared out may not be all, if a rebalance was on: then no hash fits, and the target
    # is worked out anew even if nothing else asks for it.
    fits = classic.state is State.STABLE
    turn.write(epoch_record(name, epoch, turn.group.hash_of(topics) if fits else NO_HASH))
    for member in members:
        turn.write(target_record(name, member.id, member.assigned))
    turn.write(target_epoch_record(name, epoch, turn.world.now.wall_ms))
    for member in members:
        turn.write(current_record(name, member))
        turn.heard(member.id)
    again = RebalanceInProgress(f"{name} becomes a group of the consumer protocol")
    return tuple(_waiting(classic, again))


def _waiting(classic: ClassicGroup, told: KafkaError) -> Iterator[Answer]:
    for each in classic.members.values():
        if each.join is not None:
            yield answer(each.join, told)
        if each.sync is not None:
            yield answer(each.sync, told)


class Standing(NamedTuple):
    """A member of the classic group, what it last told, and what it may have."""

    member: Member
    told: ConsumerProtocolSubscription
    share: Share


def _with_shares(group: ClassicGroup, topics: Topics) -> Iterator[Standing]:
    """Every member with its share, and what else it holds: one that cooperates keeps what it has
    until it hears of its new share, although that is not what the group's last word gives it.
    """
    told, shares = {}, {}
    for member in group.members.values():
        try:
            told[member.id] = _subscription(member, group)
            shares[member.id] = _share(member, group.protocol, topics)
        except ProtocolError as error:
            raise GroupIdNotFound(f"{member.id} of {group.id}: {error}") from None
    taken = NOTHING.union(*shares.values())
    if sum(map(len, shares.values())) != len(taken):
        raise GroupIdNotFound(f"two members of {group.id} have the same partition")
    for member in group.members.values():
        has_synced = group.state is State.STABLE and member.id not in group.unsynced
        claim = NOTHING if has_synced else owned(told[member.id], topics) - taken
        taken |= claim
        yield Standing(member, told[member.id], shares[member.id] | claim)


def _subscription(member: Member, group: ClassicGroup) -> ConsumerProtocolSubscription:
    """Before the first generation is elected, and after a change of mind, of its first choice."""
    return read_subscription(member.metadata(group.protocol) or member.protocols[0].metadata)


def _share(member: Member, protocol: str | None, topics: Topics) -> Share:
    if not member.assignment:
        return NOTHING  # it has joined and never synced
    share = read_assignment(member.assignment)
    if share.user_data and protocol not in STICKY:
        raise ProtocolError("its assignor keeps data of its own, which would be lost")
    return share_by_name(share.assigned_partitions, topics)


def _member(standing: Standing, epoch: int) -> ConsumerMember:
    """The member in the epoch that is the group's generation."""
    member, told, share = standing
    return ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=told.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(told.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicTerms(member.session_timeout_ms, member.protocols),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=share,
    )
