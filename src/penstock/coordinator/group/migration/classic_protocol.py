"""Members of the classic protocol in a group of the consumer protocol.

They join, sync, heartbeat and leave as usual. None leads, since the coordinator assigns. A join
moves the member one step towards its target assignment. For the next step it has to join again; the
replies to its heartbeats tell it so.
"""

import msgspec

from penstock.coordinator.group.classic.embedded_protocol import (
    CONSUMER,
    assignment_bytes,
    read_subscription,
)
from penstock.coordinator.group.classic.join import GroupJoin, check_session_timeout
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.draft import ConsumerGroupDraft
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import checked_member, refresh
from penstock.coordinator.group.consumer.member import (
    ClassicMemberSettings,
    ConsumerGroupMember,
    MemberState,
)
from penstock.coordinator.group.errors import (
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.coordinator.group.migration.assignment import names_of, owned
from penstock.coordinator.group.migration.downgrade import (
    downgrade,
    may_downgrade,
    remove_members,
)
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def join(draft: ConsumerGroupDraft, request: GroupJoin) -> Joined:
    """Join, or join again; the reply comes at once, since no other member is waited for."""
    config = draft.context.config
    if config.group_consumer_migration_policy == "disabled":
        raise InconsistentGroupProtocol(
            f"group.consumer.migration.policy=disabled: {draft.group.id} takes no classic members"
        )
    member_id = request.member_id or request.new_member_id
    check_session_timeout(request, config)
    is_full = len(draft.group.members) >= config.group_consumer_max_size
    if is_full and member_id not in draft.group.members:
        raise GroupMaxSizeReached(f"{config.group_consumer_max_size} members")
    if not draft.group.supports(request.protocol_type, request.protocols):
        raise InconsistentGroupProtocol(
            f"{request.protocol_type}: no strategy that all classic members support"
        )
    if not request.member_id and request.needs_known_id and request.instance_id is None:
        raise MemberIdRequired(request.new_member_id)
    subscription = _subscription(request)
    _check_owner(draft.group, request, subscription)
    replaced = _replaced(draft, request, member_id)
    known = draft.group.members.get(member_id)
    epoch = draft.group.epoch
    draft.subscribed(
        known, _updated(known or ConsumerGroupMember(id=member_id), request, subscription)
    )
    refresh(draft, is_change=draft.group.epoch > epoch)
    draft.reconcile(member_id, owned(subscription, draft.context.topics))
    draft.renew_session(member_id)
    deadline_ms = _deadline_ms(draft, known, draft.group.members[member_id])
    draft.set_deadlines(member_id, rebalance_deadline_ms=deadline_ms)
    draft.finish()
    members = draft.group.members
    was_consumer = replaced is not None and replaced.classic is None
    if was_consumer and may_downgrade(draft, members.values()):
        downgrade(draft, members.values())
    return Joined(member_id, members[member_id].epoch, CONSUMER, request.protocols[0].name, None)


def _deadline_ms(
    draft: ConsumerGroupDraft, before: ConsumerGroupMember | None, after: ConsumerGroupMember
) -> int:
    """Until when it has to sync, or to revoke. If it joins again and has not revoked what it must,
    its time goes on: others wait for that.
    """
    if (
        before is not None
        and before.rebalance_deadline_ms is not None
        and after.state is MemberState.UNREVOKED_PARTITIONS
        and before.revoking == after.revoking
    ):
        return before.rebalance_deadline_ms
    return draft.now_ms + after.rebalance_timeout_ms


def _subscription(request: GroupJoin) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        raise InconsistentGroupProtocol(f"the subscription cannot be read: {error}") from None


def _check_owner(
    group: ConsumerGroup, request: GroupJoin, subscription: ConsumerProtocolSubscription
) -> None:
    """Refuse a member that was removed and still reads its partitions: others have them now.

    Kafka accepts it as a new member, whose next commit then rewinds the new owner's. A refused
    client gives up its partitions as lost and joins again. An unknown id that owns nothing may
    join: the client got it from MEMBER_ID_REQUIRED, which creates no member.
    """
    is_unknown = request.member_id != "" and request.member_id not in group.members
    if is_unknown and subscription.owned_partitions:
        raise UnknownMemberId(f"{request.member_id} was removed, and its partitions with it")


def _replaced(
    draft: ConsumerGroupDraft, request: GroupJoin, member_id: str
) -> ConsumerGroupMember | None:
    """The static member that this one replaces, if any."""
    if request.instance_id is None:
        return None
    if request.member_id:
        checked_member(draft.group, request.member_id, request.instance_id)
        return None
    static = draft.group.static_member(request.instance_id)
    if static is not None:
        draft.replace(static, member_id)
    return static


def _updated(
    member: ConsumerGroupMember, request: GroupJoin, subscription: ConsumerProtocolSubscription
) -> ConsumerGroupMember:
    return msgspec.structs.replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=frozenset(subscription.topics),
        regex=None,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        classic=ClassicMemberSettings(request.session_timeout_ms, request.protocols),
    )


def sync(draft: ConsumerGroupDraft, request: GroupSync) -> Synced | KafkaError:
    """The member's assignment, encoded for consumers of the classic protocol."""
    member, settings = _checked(
        draft.group, request.member_id, request.instance_id, request.generation
    )
    if request.protocol_type not in {None, CONSUMER}:
        raise InconsistentGroupProtocol(f"{request.protocol_type} is not {CONSUMER}")
    if request.protocol not in {None, settings.protocol.name}:
        raise InconsistentGroupProtocol(f"{request.protocol} is not {settings.protocol.name}")
    refresh(draft, is_change=False)
    revokes = member.state is MemberState.UNREVOKED_PARTITIONS
    if draft.group.target_epoch > member.epoch and not revokes:
        # A member that has to revoke has joined in this epoch, and joins again once it has.
        return _rejoin_required(draft, member)
    draft.renew_session(member.id)
    if not revokes:
        draft.set_deadlines(member.id, rebalance_deadline_ms=None)
    assignment = assignment_bytes(
        names_of(member.assigned, draft.context.topics), settings.protocol.metadata
    )
    return Synced(request.protocol_type, request.protocol, assignment)


def heartbeat(
    draft: ConsumerGroupDraft, member_id: str, instance_id: str | None, generation: int
) -> KafkaError | None:
    """Renew the member's session; the error, if any, tells it to join again."""
    member, _ = _checked(draft.group, member_id, instance_id, generation)
    draft.renew_session(member.id)
    refresh(draft, is_change=False)
    member = draft.group.members[member.id]
    return _rejoin_required(draft, member) if _must_rejoin(draft.group, member) else None


def _must_rejoin(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether there is a new target, awaited partitions are free, or the member has to revoke."""
    if member.epoch < group.target_epoch:
        return True
    match member.state:
        case MemberState.STABLE:
            return False
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not group.waits_for_others(member)


def _rejoin_required(draft: ConsumerGroupDraft, member: ConsumerGroupMember) -> KafkaError:
    """The error that tells a member to join again; the first one starts its time to do so."""
    if member.rebalance_deadline_ms is None:
        draft.set_deadlines(
            member.id, rebalance_deadline_ms=draft.now_ms + member.rebalance_timeout_ms
        )
    return RebalanceInProgress(f"{draft.group.id} rebalances")


def _checked(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerGroupMember, ClassicMemberSettings]:
    member = checked_member(group, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"{member.id} does not use the classic protocol")
    if generation != member.epoch:
        raise IllegalGeneration(f"{member.id} is at generation {member.epoch}")
    return member, member.classic


def leave(
    draft: ConsumerGroupDraft, leaving: tuple[LeavingMember, ...]
) -> tuple[KafkaError | None, ...]:
    """Remove members, of either protocol; one result for each."""
    found = [_leaving(draft.group, each) for each in leaving]
    gone = {each.id: each for each in found if isinstance(each, ConsumerGroupMember)}
    if gone:
        remove_members(draft, gone.values(), f"{', '.join(gone)} left")
    return tuple(each if isinstance(each, KafkaError) else None for each in found)


def _leaving(group: ConsumerGroup, leaving: LeavingMember) -> ConsumerGroupMember | KafkaError:
    try:
        if not leaving.member_id and leaving.instance_id is not None:
            static = group.static_member(leaving.instance_id)
            if static is not None:
                return static
        return checked_member(group, leaving.member_id, leaving.instance_id)
    except KafkaError as refused:
        return refused
