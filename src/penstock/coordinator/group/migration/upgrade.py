"""A classic group becomes one of the consumer protocol, with its members and their shares."""

from collections.abc import Iterator

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import Topics
from penstock.coordinator.group.consumer.member import (
    NOTHING,
    ClassicTerms,
    ConsumerMember,
    Share,
    TopicIdPartition,
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
from penstock.coordinator.group.refusal import GroupIdNotFound, RebalanceInProgress
from penstock.coordinator.outcome import Answer, answer
from penstock.errors import KafkaError, ProtocolError

ALLOWED = {"upgrade", "bidirectional"}
"""The values of `group.consumer.migration.policy` with which groups are upgraded."""


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
        raise GroupIdNotFound(f"the members of {group.id} are no consumers")
    if len(group.members) > config.group_consumer_max_size:
        raise GroupIdNotFound(f"{group.id} has more members than group.consumer.max.size")


def upgrade(turn: ConsumerTurn, classic: ClassicGroup) -> tuple[Answer, ...]:
    """Write the members, with what they have, into a group that is new; those who wait for the
    old one's next generation are told to join again.
    """
    name, epoch = turn.group.id, classic.generation
    members = [_member(each, classic, turn.world.topics) for each in classic.members.values()]
    shares = [each.assigned for each in members]
    if sum(map(len, shares)) != len(NOTHING.union(*shares)):
        raise GroupIdNotFound(f"two members of {name} have the same partition")
    for member in members:
        turn.write(member_record(name, member))
    turn.write(epoch_record(name, epoch, turn.group.hash_of(turn.world.topics)))
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


def _member(member: Member, group: ClassicGroup, topics: Topics) -> ConsumerMember:
    """The member in the epoch that is the group's generation, with its last share."""
    try:
        # Before the first generation is elected, and after a change of mind, its own first choice.
        told = read_subscription(member.metadata(group.protocol) or member.protocols[0].metadata)
        assigned = _share(member, topics)
    except ProtocolError as error:
        raise GroupIdNotFound(f"{member.id} of {group.id} cannot be understood: {error}") from None
    return ConsumerMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=told.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(told.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicTerms(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned=assigned,
    )


def _share(member: Member, topics: Topics) -> Share:
    if not member.assignment:
        return NOTHING  # it has joined and never synced
    share = read_assignment(member.assignment)
    if share.user_data:
        raise ProtocolError("its assignor keeps data of its own, which would be lost")
    return frozenset(
        TopicIdPartition(topics[each.topic].id, index)
        for each in share.assigned_partitions
        if each.topic in topics
        for index in each.partitions
    )
