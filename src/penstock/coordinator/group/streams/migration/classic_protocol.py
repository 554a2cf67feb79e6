"""Classic members in a streams group: they join, sync, heartbeat and leave as usual.

None leads, since the coordinator assigns; the assignment has the user data that Kafka Streams
expects. A join moves the member one step towards its target. For the next step it has to join
again; the replies to its heartbeats tell it so. Classic members get no standbys, since their
requests do not report the state of standbys.
"""

import msgspec

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.embedded_protocol import CONSUMER, assignment_bytes
from penstock.coordinator.group.classic.join import GroupJoin, check_session_timeout
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import Joined, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.member import ClassicMemberSettings
from penstock.coordinator.group.errors import (
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.coordinator.group.streams.draft import StreamsGroupDraft
from penstock.coordinator.group.streams.endpoints import partitions_by_endpoint
from penstock.coordinator.group.streams.group import StreamsGroup, StreamsGroupState
from penstock.coordinator.group.streams.heartbeat import assign
from penstock.coordinator.group.streams.member import (
    NO_TOPOLOGY,
    StreamsGroupMember,
    StreamsMemberState,
)
from penstock.coordinator.group.streams.migration.process import replace_process
from penstock.coordinator.group.streams.migration.tasks import (
    is_numbered,
    partitions_of,
    tasks_with,
)
from penstock.coordinator.group.streams.migration.upgrade import (
    STREAM,
    StreamsSubscription,
    read_streams,
)
from penstock.coordinator.group.streams.migration.user_data import assignment_user_data
from penstock.coordinator.group.streams.reconcile import reconciled
from penstock.coordinator.group.streams.records import member_record
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment
from penstock.coordinator.group.streams.topology import source_topics
from penstock.coordinator.result import Refused
from penstock.errors import KafkaError, ProtocolError


def join(draft: StreamsGroupDraft, request: GroupJoin, config: GroupConfig) -> Joined:
    """Join, or join again; the reply comes at once, since no other member is waited for."""
    stated = _stated(draft.group, request)
    check_session_timeout(request, config)
    member_id, topology = request.member_id or request.new_member_id, draft.group.topology
    assert topology is not None, "a group with members has a topology"
    known, most = draft.group.members.get(member_id), draft.context.config.group_streams_max_size
    if known is not None and not known.is_classic:
        raise UnknownMemberId(f"{member_id} of {draft.group.id} uses the streams protocol")
    if known is None and len(draft.group.members) >= most:
        raise GroupMaxSizeReached(f"{most} members")
    if not request.member_id and request.needs_known_id:
        raise MemberIdRequired(request.new_member_id)
    owned = TaskAssignment(tasks_with(stated.subscription.owned_partitions, topology))
    if known is None and owned:
        # It was removed and does not know yet: others may have its tasks already.
        raise UnknownMemberId(f"{draft.group.id} has no member {member_id}")
    if known is None:
        replace_process(draft, stated.user_data.process_id, was_classic=False)
    member = _updated(known or StreamsGroupMember(id=member_id), request, stated)
    if known is None or member != known:
        draft.write(member_record(draft.group.id, member))
    draft.refresh(bumps=known is None)
    assign(draft, is_change=known is None)
    settings = ClassicMemberSettings(request.session_timeout_ms, request.protocols)
    draft.change_member(member_id, classic=settings)
    draft.reconcile(member_id, owned)
    draft.renew_session(member_id)
    deadline_ms = _deadline_ms(draft, known, draft.group.members[member_id])
    draft.change_member(member_id, rebalance_deadline_ms=deadline_ms, endpoints_told=None)
    return Joined(member_id, draft.group.members[member_id].epoch, CONSUMER, STREAM, None)


def _deadline_ms(
    draft: StreamsGroupDraft, before: StreamsGroupMember | None, after: StreamsGroupMember
) -> int:
    """The deadline for the member to sync, or to revoke tasks.

    A member that joins again before it has revoked its tasks keeps its deadline: others wait for
    them.
    """
    if (
        before is not None
        and before.rebalance_deadline_ms is not None
        and after.state is StreamsMemberState.UNREVOKED_TASKS
        and before.revoking == after.revoking
    ):
        return before.rebalance_deadline_ms
    return draft.now_ms + after.rebalance_timeout_ms


def _stated(group: StreamsGroup, request: GroupJoin) -> StreamsSubscription:
    """The subscription, if it is one of this application."""
    names = [each.name for each in request.protocols]
    if request.protocol_type != CONSUMER or names[:1] != [STREAM] or group.topology is None:
        raise InconsistentGroupProtocol(f"{group.id} is a streams group")
    if not is_numbered(group.topology):
        raise InconsistentGroupProtocol(
            f"{group.id} has names for subtopologies, and the classic protocol has numbers"
        )
    if request.instance_id is not None:
        raise InconsistentGroupProtocol(f"{group.id} has no room for static classic members")
    try:
        stated = read_streams(request.protocols[0].metadata)
    except ProtocolError as error:
        raise InconsistentGroupProtocol(f"the subscription cannot be read: {error}") from None
    if frozenset(stated.subscription.topics) != source_topics(group.topology):
        raise InconsistentGroupProtocol(f"{group.id} has another topology, with other topics")
    return stated


def _updated(
    member: StreamsGroupMember, request: GroupJoin, stated: StreamsSubscription
) -> StreamsGroupMember:
    return msgspec.structs.replace(
        member,
        rack_id=stated.subscription.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology_epoch=NO_TOPOLOGY,
        process_id=stated.user_data.process_id,
        endpoint=stated.user_data.endpoint,
    )


def sync(draft: StreamsGroupDraft, request: GroupSync) -> Synced | KafkaError:
    """The member's tasks, encoded for Kafka Streams in the classic protocol."""
    member = _checked(draft.group, request.member_id, request.generation)
    if request.protocol_type not in {None, CONSUMER} or request.protocol not in {None, STREAM}:
        raise InconsistentGroupProtocol(f"{request.protocol_type} {request.protocol}")
    revokes = member.state is StreamsMemberState.UNREVOKED_TASKS
    is_behind = draft.group.target_epoch > member.epoch and not revokes
    if member.classic is None or is_behind:
        return _rejoin_required(draft, member)
    draft.renew_session(member.id)
    if not revokes:
        draft.change_member(member.id, rebalance_deadline_ms=None)
    draft.change_member(member.id, endpoints_told=draft.group.endpoint_epoch)
    assignment = _assignment(draft, member, member.classic)
    return Synced(request.protocol_type, request.protocol, assignment)


def _assignment(
    draft: StreamsGroupDraft, member: StreamsGroupMember, settings: ClassicMemberSettings
) -> bytes:
    group, topics = draft.group, draft.context.topics
    assert group.topology is not None, "a group with members has a topology"
    pairs = partitions_of(member.assigned.active, group.topology, topics)
    by_topic: dict[str, list[int]] = {}
    for (topic, partition), _ in pairs:
        by_topic.setdefault(topic, []).append(partition)
    metadata = settings.protocol.metadata
    stated = read_streams(metadata).user_data
    # Kafka Streams rejoins at once, in an endless loop, if it gets endpoints without its own.
    hosts = [] if stated.is_ignored else partitions_by_endpoint(group, topics)
    user_data = assignment_user_data(stated.version, [task for _, task in pairs], hosts)
    return assignment_bytes(by_topic, metadata, user_data)


def heartbeat(draft: StreamsGroupDraft, member_id: str, generation: int) -> KafkaError | None:
    """Renew the member's session; the error, if any, tells it to join again."""
    member = _checked(draft.group, member_id, generation)
    draft.renew_session(member_id)
    draft.refresh(bumps=False)
    assign(draft, is_change=False)
    return _rejoin_required(draft, member) if _must_rejoin(draft.group, member) else None


def _must_rejoin(group: StreamsGroup, member: StreamsGroupMember) -> bool:
    """Whether the member has a next step to make, or this coordinator lacks its settings, or the
    endpoints that it got are old.

    The settings are in memory only: a new coordinator lacks them. Only an assignment has endpoints.
    """
    if member.classic is None or member.state is StreamsMemberState.UNREVOKED_TASKS:
        return True
    if _has_old_endpoints(group, member):
        return True
    target = group.target.get(member.id, NOTHING)
    others = [each for each in group.members.values() if each.id != member.id]
    return reconciled(member, target, group.target_epoch, member.assigned, others) != member


def _has_old_endpoints(group: StreamsGroup, member: StreamsGroupMember) -> bool:
    """Whether its endpoints are old. False while tasks move: each step would make it rejoin."""
    is_old = member.endpoints_told not in {None, group.endpoint_epoch}
    return is_old and group.state is StreamsGroupState.STABLE


def _rejoin_required(draft: StreamsGroupDraft, member: StreamsGroupMember) -> KafkaError:
    """The error that tells a member to join again; the first one starts its time to do so."""
    if member.rebalance_deadline_ms is None:
        deadline_ms = draft.now_ms + member.rebalance_timeout_ms
        draft.change_member(member.id, rebalance_deadline_ms=deadline_ms)
    return RebalanceInProgress(f"{draft.group.id} rebalances")


def _checked(group: StreamsGroup, member_id: str, generation: int) -> StreamsGroupMember:
    member = group.members.get(member_id)
    if member is None or not member.is_classic:
        raise UnknownMemberId(f"{group.id} has no member {member_id} of the classic protocol")
    if generation != member.epoch:
        raise IllegalGeneration(f"{member.id} is at generation {member.epoch}")
    return member


def leave(draft: StreamsGroupDraft, leaving: tuple[LeavingMember, ...]) -> tuple[Refused, ...]:
    """Remove classic members; one result for each."""
    members = draft.group.members
    gone = [
        each.member_id
        for each in leaving
        if each.member_id in members and members[each.member_id].is_classic
    ]
    if gone:
        draft.remove(gone)
    return tuple(
        None
        if each.member_id in gone
        else UnknownMemberId(f"{draft.group.id} has no classic member {each.member_id}")
        for each in leaving
    )
