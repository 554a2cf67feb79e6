"""Members of the classic protocol in a group of the consumer protocol.

They join, sync, heartbeat and leave as ever; nobody leads, since the coordinator shares out. A
joining member is taken one step towards the target at once. To be taken the next it has to join
again, which its heartbeats tell it.
"""

import msgspec

from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.heartbeat import bring_up_to_date, checked_member
from penstock.coordinator.group.consumer.member import (
    ClassicTerms,
    ConsumerMember,
    MemberState,
)
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.embedded import CONSUMER, assignment_bytes, read_subscription
from penstock.coordinator.group.join import Joining, check_session_timeout
from penstock.coordinator.group.member import Joined, Synced
from penstock.coordinator.group.membership import Leaving, Syncing
from penstock.coordinator.group.migration.downgrade import (
    downgrade,
    may_downgrade,
    without,
)
from penstock.coordinator.group.migration.share import names_of, owned
from penstock.coordinator.group.refusal import (
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription


def join(turn: ConsumerTurn, asked: Joining) -> Joined:
    """Come, or come again: there is nobody to wait for."""
    config = turn.world.config
    member_id = asked.member_id or asked.new_member_id
    check_session_timeout(asked, config)
    is_full = len(turn.group.members) >= config.group_consumer_max_size
    if is_full and member_id not in turn.group.members:
        raise GroupMaxSizeReached(f"{config.group_consumer_max_size} members")
    if not turn.group.supports(asked.protocol_type, asked.protocols):
        raise InconsistentGroupProtocol(f"{asked.protocol_type} is not what all members know")
    if not asked.member_id and asked.needs_known_id and asked.instance_id is None:
        raise MemberIdRequired(asked.new_member_id)
    told = _subscription(asked)
    replaced = _replaced(turn, asked, member_id)
    known = turn.group.members.get(member_id)
    epoch = turn.group.epoch
    turn.subscribed(known, _updated(known or ConsumerMember(id=member_id), asked, told))
    bring_up_to_date(turn, is_news=turn.group.epoch > epoch)
    turn.reconcile(member_id, owned(told, turn.world.topics))
    turn.heard(member_id)
    turn.keep(member_id, act_by_ms=turn.now_ms + asked.rebalance_timeout_ms)
    turn.finish()
    members = turn.group.members
    was_consumer = replaced is not None and replaced.classic is None
    if was_consumer and may_downgrade(turn, members.values()):
        downgrade(turn, members.values())
    return Joined(member_id, members[member_id].epoch, CONSUMER, asked.protocols[0].name, None)


def _subscription(asked: Joining) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(asked.protocols[0].metadata)
    except ProtocolError as error:
        raise InconsistentGroupProtocol(f"no subscription of a consumer: {error}") from None


def _replaced(turn: ConsumerTurn, asked: Joining, member_id: str) -> ConsumerMember | None:
    """The static member whose place this one takes, if it does."""
    if asked.instance_id is None:
        return None
    if asked.member_id:
        checked_member(turn.group, asked.member_id, asked.instance_id)
        return None
    static = turn.group.static_member(asked.instance_id)
    if static is not None:
        turn.replace(static, member_id)
    return static


def _updated(
    member: ConsumerMember, asked: Joining, told: ConsumerProtocolSubscription
) -> ConsumerMember:
    return msgspec.structs.replace(
        member,
        instance_id=asked.instance_id or member.instance_id,
        rack_id=told.rack_id or member.rack_id,
        client_id=asked.client_id,
        client_host=asked.client_host,
        topics=frozenset(told.topics),
        regex=None,
        rebalance_timeout_ms=asked.rebalance_timeout_ms,
        classic=ClassicTerms(asked.session_timeout_ms, asked.protocols),
    )


def sync(turn: ConsumerTurn, asked: Syncing) -> Synced | KafkaError:
    """The member's share, in the words of the consumer protocol."""
    member, terms = _checked(turn.group, asked.member_id, asked.instance_id, asked.generation)
    if asked.protocol_type not in {None, CONSUMER}:
        raise InconsistentGroupProtocol(f"{asked.protocol_type} is not {CONSUMER}")
    if asked.protocol not in {None, terms.protocol.name}:
        raise InconsistentGroupProtocol(f"{asked.protocol} is not {terms.protocol.name}")
    bring_up_to_date(turn, is_news=False)
    revokes = member.state is MemberState.UNREVOKED_PARTITIONS
    if turn.group.target_epoch > member.epoch and not revokes:
        # One that revokes has joined in this epoch, and comes again when it has revoked.
        return _again(turn, member)
    turn.heard(member.id)
    turn.keep(member.id, act_by_ms=None)
    share = assignment_bytes(names_of(member.assigned, turn.world.topics), terms.protocol.metadata)
    return Synced(asked.protocol_type, asked.protocol, share)


def heartbeat(turn: ConsumerTurn, who: Leaving, generation: int) -> KafkaError | None:
    """Keep a session alive; what it returns tells the member to join again."""
    member, _ = _checked(turn.group, who.member_id, who.instance_id, generation)
    turn.heard(member.id)
    bring_up_to_date(turn, is_news=False)
    member = turn.group.members[member.id]
    return _again(turn, member) if _must_join(turn.group, member) else None


def _must_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """There is something new, or something that it waited for is free, or it is to revoke."""
    if member.epoch < group.target_epoch:
        return True
    match member.state:
        case MemberState.STABLE:
            return False
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not group.waits(member)


def _again(turn: ConsumerTurn, member: ConsumerMember) -> KafkaError:
    """Its time to join runs from the first call on."""
    if member.act_by_ms is None:
        turn.keep(member.id, act_by_ms=turn.now_ms + member.rebalance_timeout_ms)
    return RebalanceInProgress(f"{turn.group.id} rebalances")


def _checked(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerMember, ClassicTerms]:
    member = checked_member(group, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"{member.id} does not speak the classic protocol")
    if generation != member.epoch:
        raise IllegalGeneration(f"{member.id} is at generation {member.epoch}")
    return member, member.classic


def leave(turn: ConsumerTurn, leaving: tuple[Leaving, ...]) -> tuple[KafkaError | None, ...]:
    """Take members out, of either protocol; one answer for each."""
    found = [_leaving(turn.group, each) for each in leaving]
    gone = {each.id: each for each in found if isinstance(each, ConsumerMember)}
    if gone:
        without(turn, gone.values(), f"{', '.join(gone)} left")
    return tuple(each if isinstance(each, KafkaError) else None for each in found)


def _leaving(group: ConsumerGroup, leaving: Leaving) -> ConsumerMember | KafkaError:
    try:
        if not leaving.member_id and leaving.instance_id is not None:
            static = group.static_member(leaving.instance_id)
            if static is not None:
                return static
        return checked_member(group, leaving.member_id, leaving.instance_id)
    except KafkaError as refused:
        return refused
