"""A classic group becomes one of the consumer protocol and keeps its members' assignments."""

from collections.abc import Iterator
from typing import NamedTuple

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.embedded_protocol import (
    CONSUMER,
    read_assignment,
    read_subscription,
)
from penstock.coordinator.group.classic.group import ClassicGroup
from penstock.coordinator.group.classic.member import ClassicGroupMember
from penstock.coordinator.group.classic.state import ClassicGroupState
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.group import NO_HASH, Topics
from penstock.coordinator.group.consumer.member import (
    NO_PARTITIONS,
    Assignment,
    ClassicMemberSettings,
    ConsumerGroupMember,
)
from penstock.coordinator.group.consumer.records import (
    current_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from penstock.coordinator.group.errors import GroupIdNotFound, RebalanceInProgress
from penstock.coordinator.group.migration.assignment import assignment_by_name, owned
from penstock.coordinator.result import Answer, answer
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

ALLOWED = {"upgrade", "bidirectional"}
"""The values of `group.consumer.migration.policy` that allow an upgrade."""

STICKY = {"sticky", "cooperative-sticky"}
"""Client strategies whose user data is only the members' last assignment, which the coordinator
knows. librdkafka sends it back with the assignments; Kafka takes it for a custom assignor's.
"""


def check(group: ClassicGroup, config: GroupConfig) -> None:
    """Refuse to upgrade a group that must stay classic.

    To clients the error means "not a consumer group" in every case; the text is for people.
    """
    if config.group_consumer_migration_policy not in ALLOWED:
        raise GroupIdNotFound(
            f"the members of {group.id} use the classic protocol, and "
            "group.consumer.migration.policy does not allow an upgrade"
        )
    if group.protocol_type != CONSUMER:
        raise GroupIdNotFound(
            f"Cannot upgrade classic group {group.id} to consumer group because the group does not "
            "use the consumer embedded protocol."
        )
    if len(group.members) > config.group_consumer_max_size:
        raise GroupIdNotFound(f"{group.id} has more members than group.consumer.max.size")


def upgrade(draft: ConsumerGroupDraft, classic: ClassicGroup) -> tuple[Answer, ...]:
    """Write the members and their assignments into a new group.

    The answers tell members that await the classic group's next generation to join again.
    """
    name, topics = draft.group.id, draft.context.topics
    # A group in its first rebalance has no generation yet.
    epoch = max(classic.generation, draft.group.epoch)
    members = [_member(each, epoch) for each in _upgraded_members(classic, topics)]
    for member in members:
        draft.write(member_record(name, member))
    # During a rebalance the assignments may be incomplete. Then the hash is left unset, so that the
    # target assignment is computed again even if nothing else requires it.
    is_complete = classic.state is ClassicGroupState.STABLE
    draft.write(epoch_record(name, epoch, draft.group.hash_of(topics) if is_complete else NO_HASH))
    for member in members:
        draft.write(target_record(name, member.id, member.assigned))
    draft.write(target_epoch_record(name, epoch, draft.context.now.wall_ms))
    for member in members:
        draft.write(current_record(name, member))
        draft.renew_session(member.id)
    rejoin = RebalanceInProgress(f"{name} becomes a group of the consumer protocol")
    return tuple(_answers(classic, rejoin))


def _answers(classic: ClassicGroup, error: KafkaError) -> Iterator[Answer]:
    for each in classic.members.values():
        if each.awaiting_join is not None:
            yield answer(each.awaiting_join, error)
        if each.awaiting_sync is not None:
            yield answer(each.awaiting_sync, error)


class UpgradedMember(NamedTuple):
    """A member of the classic group, its last subscription, and the partitions that it may own."""

    member: ClassicGroupMember
    subscription: ConsumerProtocolSubscription
    assignment: Assignment


def _upgraded_members(group: ClassicGroup, topics: Topics) -> Iterator[UpgradedMember]:
    """Every member with its assignment and the other partitions that it owns.

    A cooperative member may own more than its assignment: between its join and its sync it keeps
    the partitions that it had, and after a rebalance that failed the coordinator knows no
    assignment at all. So the partitions that members claim to own count too; otherwise another
    member would get them as well.
    """
    subscriptions, assignments = {}, {}
    for member in group.members.values():
        try:
            subscriptions[member.id] = _subscription(member, group)
            assignments[member.id] = _assignment(member, group.protocol, topics)
        except ProtocolError as error:
            raise GroupIdNotFound(f"{member.id} of {group.id}: {error}") from None
    assigned = NO_PARTITIONS.union(*assignments.values())
    if sum(map(len, assignments.values())) != len(assigned):
        raise GroupIdNotFound(f"two members of {group.id} have the same partition")
    for member in group.members.values():
        has_synced = (
            group.state is ClassicGroupState.STABLE and member.id not in group.pending_sync_members
        )
        subscription = subscriptions[member.id]
        claimed = NO_PARTITIONS if has_synced else owned(subscription, topics) - assigned
        assigned |= claimed
        yield UpgradedMember(member, subscription, assignments[member.id] | claimed)


def _subscription(member: ClassicGroupMember, group: ClassicGroup) -> ConsumerProtocolSubscription:
    """The subscription for the elected strategy, or for the member's first if none is elected."""
    return read_subscription(member.metadata(group.protocol) or member.protocols[0].metadata)


def _assignment(member: ClassicGroupMember, protocol: str | None, topics: Topics) -> Assignment:
    if not member.assignment:
        return NO_PARTITIONS  # it has joined but never synced
    assignment = read_assignment(member.assignment)
    if assignment.user_data and protocol not in STICKY:
        raise ProtocolError("its assignor keeps data of its own, which would be lost")
    return assignment_by_name(assignment.assigned_partitions, topics)


def _member(upgraded: UpgradedMember, epoch: int) -> ConsumerGroupMember:
    """The member, in the epoch that continues the group's generation."""
    member, subscription, assignment = upgraded
    return ConsumerGroupMember(
        id=member.id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMemberSettings(member.session_timeout_ms, member.protocols),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assignment,
    )
