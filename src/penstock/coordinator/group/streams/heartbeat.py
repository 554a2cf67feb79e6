"""StreamsGroupHeartbeat: a member joins with its topology, stays, gets its tasks, or leaves."""

from collections.abc import Iterator

import msgspec

from penstock.config.value import INT_MAX
from penstock.coordinator.group.consumer.errors import (
    AssignorFailed,
    FencedMemberEpoch,
    InvalidHeartbeat,
    UnreleasedInstanceId,
)
from penstock.coordinator.group.errors import FencedInstanceId, GroupMaxSizeReached, UnknownMemberId
from penstock.coordinator.group.streams.draft import StreamsGroupDraft, returned
from penstock.coordinator.group.streams.endpoints import (
    EndpointPartitions,
    partitions_by_endpoint,
)
from penstock.coordinator.group.streams.errors import InvalidTopology
from penstock.coordinator.group.streams.group import StreamsGroup, StreamsGroupState
from penstock.coordinator.group.streams.member import (
    StreamsEndpoint,
    StreamsGroupMember,
    StreamsMemberState,
    TaskPosition,
)
from penstock.coordinator.group.streams.records import Topology, current_record, member_record
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment, Tasks
from penstock.coordinator.group.streams.topology import (
    GroupStatus,
    StatusCode,
    StreamsInternalTopic,
    named_topics,
)
from penstock.errors import InvalidRequest
from penstock.metadata.topic_names import INTERNAL_TOPICS, is_legal

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
MOST_PARTITIONS = 10_000
"""The limit for a repartition topic; the topics of one request have the same limit."""
DESCRIPTION_RETRY_MS = 30_000
"""The pause before a member is asked again: the last one may lack the permission, or end."""
RECONCILING_INTERVAL_MS = 500
"""The heartbeat interval while tasks move between members, unless the usual one is shorter."""


class StreamsHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A member's heartbeat; None, or -1: unchanged since the last one."""

    member_id: str
    epoch: int
    endpoint_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active: Tasks | None = None
    standby: Tasks | None = None
    warmup: Tasks | None = None
    process_id: str | None = None
    endpoint: StreamsEndpoint | None = None
    tags: tuple[tuple[str, str], ...] | None = None
    offsets: tuple[TaskPosition, ...] | None = None
    end_offsets: tuple[TaskPosition, ...] | None = None
    shuts_down: bool = False
    version: int = 1
    """The request's version. Version 0 (Kafka 4.3) has no static members and no descriptions."""

    @property
    def owned(self) -> TaskAssignment | None:
        """The tasks that the member reports to have."""
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return TaskAssignment(self.active, self.standby, self.warmup)


class StreamsHeartbeatReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply; `assignment` and `endpoints` are None if they have not changed."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    statuses: tuple[GroupStatus, ...] = ()
    assignment: TaskAssignment | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointPartitions, ...] | None = None
    describes_topology: bool = False
    """The member is asked to describe the topology (KIP-1331)."""
    missing: tuple[StreamsInternalTopic, ...] = ()
    """Internal topics to create before tasks can be assigned."""


def check(request: StreamsHeartbeat) -> None:
    """Refuse a request that is invalid in any group."""
    if not request.member_id:
        raise InvalidHeartbeat("MemberId can't be empty.")
    if request.instance_id is not None and request.version < 1:
        raise InvalidHeartbeat("Static membership is not yet supported.")
    if request.instance_id == "":
        raise InvalidHeartbeat("InstanceId can't be empty.")
    if request.rack_id == "":
        raise InvalidHeartbeat("RackId can't be empty.")
    owned = {"Active": request.active, "Standby": request.standby, "Warmup": request.warmup}
    if request.epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms < 0:
            raise InvalidHeartbeat("RebalanceTimeoutMs must be provided in first request.")
        for name, tasks in owned.items():
            if tasks is None or tasks:
                raise InvalidHeartbeat(f"{name}Tasks must be empty when (re-)joining.")
        if request.topology is None:
            raise InvalidHeartbeat("Topology must be non-null when (re-)joining.")
    if request.epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise InvalidHeartbeat("InstanceId can't be null.")
    if request.epoch < LEAVE_STATIC_EPOCH:
        raise InvalidHeartbeat(
            f"MemberEpoch is {request.epoch}, but must be greater than or equal to -2."
        )
    if len({tasks is None for tasks in owned.values()}) > 1:
        raise InvalidHeartbeat("If one task-type is non-null, all must be non-null.")
    if request.warmup:
        raise InvalidHeartbeat("WarmupTasks are not supported yet.")
    if request.topology is not None:
        if request.epoch != JOIN_EPOCH:
            raise InvalidHeartbeat("Topology can only be provided when (re-)joining.")
        _check_topology(request.topology)


def _check_topology(topology: Topology) -> None:
    if topology.epoch < 0:
        raise InvalidHeartbeat(f"The topology epoch {topology.epoch} is negative.")
    _check_names(topology)
    for each in topology.subtopologies:
        if each.source_topic_regex:
            raise InvalidHeartbeat("Regular expressions for source topics are not supported yet.")
        for info in each.state_changelog_topics:
            if info.partitions:
                raise InvalidTopology(
                    f"Changelog topic {info.name} must have an undefined partition count, but it "
                    f"is set to {info.partitions}."
                )
        for info in each.repartition_source_topics:
            if info.partitions > MOST_PARTITIONS:
                raise InvalidTopology(
                    f"Repartition topic {info.name} has {info.partitions} partitions, at most "
                    f"{MOST_PARTITIONS} are allowed."
                )
        for together in each.copartition_groups:
            for indexes, names in (
                (together.source_topics, each.source_topics),
                (together.repartition_source_topics, each.repartition_source_topics),
            ):
                if any(not 0 <= index < len(names) for index in indexes):
                    raise InvalidTopology(
                        f"A copartition group of subtopology {each.subtopology_id} names topics "
                        "that the subtopology does not have."
                    )


def _check_names(topology: Topology) -> None:
    """Missing topics are created as a topology wants them, so it names none of the brokers'."""
    names = dict.fromkeys(name for each in topology.subtopologies for name in named_topics(each))
    prohibited = [name for name in names if name in INTERNAL_TOPICS]
    if prohibited:
        raise InvalidTopology(
            f"Use of Kafka internal topics {','.join(prohibited)} in a Kafka Streams topology is "
            "prohibited."
        )
    illegal = [name for name in names if not is_legal(name)]
    if illegal:
        raise InvalidTopology(f"Topic names {','.join(illegal)} are not valid topic names.")


def heartbeat(draft: StreamsGroupDraft, request: StreamsHeartbeat) -> StreamsHeartbeatReply:
    known = _known(draft, request)
    if request.epoch < JOIN_EPOCH:
        if known is not None and request.epoch == LEAVE_STATIC_EPOCH:
            leave_temporarily(draft, known)
        else:
            draft.remove([request.member_id])
        return StreamsHeartbeatReply(member_id=request.member_id, epoch=request.epoch)
    _check_tasks(draft.group, request)
    most = draft.context.config.group_streams_max_size
    if known is None and len(draft.group.members) >= most:
        raise GroupMaxSizeReached(
            f"The streams group has reached its maximum capacity of {most} members."
        )
    had = NOTHING if known is None else known.assigned
    if request.topology is not None:
        draft.put_topology(request.topology)
    if not draft.group.members:
        delay_ms = draft.context.settings.streams_initial_rebalance_delay_ms
        draft.change(delayed_until_ms=draft.now_ms + delay_ms)
    member = _updated(known or StreamsGroupMember(id=request.member_id), request)
    if member != known:
        draft.write(member_record(draft.group.id, member))
    draft.refresh(bumps=member != known)
    assign(draft, is_change=member != known)
    draft.reconcile(member.id, request.owned)
    _report(draft, request)
    describes = _describes(draft, request)
    return _reply(draft, request, had, describes=describes)


def _check_tasks(group: StreamsGroup, request: StreamsHeartbeat) -> None:
    """Refuse tasks that the topology does not have, if that is known."""
    owned, found = request.owned, group.configured
    if not owned or found is None or found.status is not None:
        return
    unknown = owned.tasks - frozenset(found.tasks)
    if not unknown:
        return
    subtopology, partition = min(unknown)
    count = sum(each.subtopology == subtopology for each in found.tasks)
    if not count:
        raise InvalidRequest(f"Subtopology {subtopology} does not exist in the topology.")
    raise InvalidRequest(
        f"Task {partition} for subtopology {subtopology} is invalid. Number of tasks for this "
        f"subtopology: {count}"
    )


def assign(draft: StreamsGroupDraft, *, is_change: bool) -> None:
    """If the assignor fails, only a heartbeat that changes something (`is_change`) is refused."""
    try:
        draft.assign()
    except AssignorFailed:
        if is_change:
            raise
        # The member has changed nothing: it keeps its tasks until the assignor works.
        draft.delay_next_assignment()


def _report(draft: StreamsGroupDraft, request: StreamsHeartbeat) -> None:
    """Apply the parts of a heartbeat that are in no record: session, positions, shutdown."""
    draft.renew_session(request.member_id)
    if request.offsets is not None:
        draft.change_member(request.member_id, offsets=_known_tasks(draft, request.offsets))
    if request.end_offsets is not None:
        draft.change_member(request.member_id, end_offsets=_known_tasks(draft, request.end_offsets))
    if request.shuts_down:
        draft.change(shutdown_by=request.member_id)


def _known_tasks(
    draft: StreamsGroupDraft, reported: tuple[TaskPosition, ...]
) -> tuple[TaskPosition, ...]:
    """One position for each task of the topology: a member may report millions of others, which
    would stay in memory and be described again and again.
    """
    assert draft.group.configured is not None, "`refresh` comes before"
    tasks = frozenset(draft.group.configured.tasks)
    return tuple({each.task: each for each in reported if each.task in tasks}.values())


def _describes(draft: StreamsGroupDraft, request: StreamsHeartbeat) -> bool:
    """Whether this member is asked to describe the topology; one member at a time is."""
    if request.version < 1 or draft.group.description is not None:
        return False
    if draft.now_ms < draft.group.description_due_ms:
        return False
    draft.change(description_due_ms=draft.now_ms + DESCRIPTION_RETRY_MS)
    return True


def leave_temporarily(draft: StreamsGroupDraft, member: StreamsGroupMember) -> None:
    """A static member leaves; its tasks wait for it until its session ends."""
    away = msgspec.structs.replace(
        member, epoch=LEAVE_STATIC_EPOCH, state=StreamsMemberState.STABLE, revoking=NOTHING
    )
    draft.write(current_record(draft.group.id, away))
    draft.change_member(member.id, rebalance_deadline_ms=None)


def _reply(
    draft: StreamsGroupDraft, request: StreamsHeartbeat, had: TaskAssignment, *, describes: bool
) -> StreamsHeartbeatReply:
    group = draft.group
    member = group.members[request.member_id]
    assert group.configured is not None, "`refresh` comes before"
    is_full = request.epoch == JOIN_EPOCH or (
        request.rebalance_timeout_ms >= 0 and request.owned is not None
    )
    tells_endpoints = group.endpoint_epoch != request.endpoint_epoch
    return StreamsHeartbeatReply(
        member_id=member.id,
        epoch=member.epoch,
        interval_ms=interval_ms(draft),
        statuses=tuple(_statuses(draft, member)),
        assignment=member.assigned if is_full or member.assigned != had else None,
        endpoint_epoch=group.endpoint_epoch,
        endpoints=tuple(partitions_by_endpoint(group, draft.context.topics))
        if tells_endpoints
        else None,
        missing=group.configured.missing,
        describes_topology=describes,
    )


def interval_ms(draft: StreamsGroupDraft) -> int:
    """The heartbeat interval; shorter while a member waits for what a later heartbeat brings."""
    group, usual_ms = draft.group, draft.context.settings.streams_heartbeat_interval_ms
    match group.state:
        case StreamsGroupState.STABLE:
            return usual_ms
        case StreamsGroupState.NOT_READY if not group.configured or not group.configured.missing:
            return usual_ms
        case StreamsGroupState.ASSIGNING if draft.assigns_in_ms > 0:
            return min(usual_ms, draft.assigns_in_ms)
        case _:
            return min(usual_ms, RECONCILING_INTERVAL_MS)


def _statuses(draft: StreamsGroupDraft, member: StreamsGroupMember) -> Iterator[GroupStatus]:
    group = draft.group
    assert group.topology is not None, "a group with members has a topology"
    assert group.configured is not None, "`refresh` comes before"
    if member.topology_epoch < group.topology.epoch:
        yield GroupStatus(
            StatusCode.STALE_TOPOLOGY,
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology "
            f"epoch {group.topology.epoch}.",
        )
    if group.configured.status is not None:
        yield group.configured.status
    if group.epoch > group.target_epoch and draft.delay_ms > 0:
        yield GroupStatus(
            StatusCode.ASSIGNMENT_DELAYED,
            "Assignment delayed due to the configured initial rebalance delay.",
        )
    if group.shutdown_by is not None:
        yield GroupStatus(
            StatusCode.SHUTDOWN_APPLICATION,
            f"Streams group member {group.shutdown_by} encountered a fatal error and requested a "
            "shutdown for the entire application.",
        )


def _updated(member: StreamsGroupMember, request: StreamsHeartbeat) -> StreamsGroupMember:
    topology, timeout_ms = request.topology, request.rebalance_timeout_ms
    return msgspec.structs.replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=request.endpoint or member.endpoint,
        tags=member.tags if request.tags is None else request.tags,
    )


def _known(draft: StreamsGroupDraft, request: StreamsHeartbeat) -> StreamsGroupMember | None:
    """The present member, after a static member has replaced its former self; None: it is new."""
    if request.epoch == JOIN_EPOCH:
        if request.instance_id is not None:
            _take_instance(draft, request.member_id, request.instance_id)
        return draft.group.members.get(request.member_id)
    member = _checked_member(draft.group, request)
    if request.epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH, member.epoch}:
        return member
    owned, missed_one = request.owned, request.epoch == member.previous_epoch
    if missed_one and owned is not None and owned <= member.assigned and not member.is_away:
        return member  # the response with the new epoch was lost
    which = "greater" if request.epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The streams group member has a {which} member epoch ({request.epoch}) than the one known "
        f"by the group coordinator ({member.epoch}). The member must abandon all its partitions "
        "and rejoin."
    )


def _take_instance(draft: StreamsGroupDraft, member_id: str, instance_id: str) -> None:
    """Let a static member that joins continue under its present member id."""
    static = draft.group.static_member(instance_id)
    if static is None:
        return
    if static.id == member_id:
        if static.is_away:
            draft.write(current_record(draft.group.id, returned(static)))
    elif not static.is_away:
        raise UnreleasedInstanceId(
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {static.id} member."
        )
    else:
        draft.replace(static, member_id)


def _checked_member(group: StreamsGroup, request: StreamsHeartbeat) -> StreamsGroupMember:
    """The member that a request claims to be from, if the claim is right."""
    if request.instance_id is not None:
        static = group.static_member(request.instance_id)
        if static is None:
            raise UnknownMemberId(f"Instance id {request.instance_id} is unknown.")
        if static.id != request.member_id:
            raise FencedInstanceId(
                f"Static member {request.member_id} with instance id {request.instance_id} was "
                f"fenced by member {static.id}."
            )
    member = group.members.get(request.member_id)
    if member is None:
        raise UnknownMemberId(f"Member {request.member_id} is not a member of group {group.id}.")
    return member


def renew_deadlines(draft: StreamsGroupDraft) -> None:
    """Give every member its full timeouts again, on a new coordinator.

    The endpoint epoch starts from the clock. A count from 0 could reach an epoch that the former
    coordinator has sent, and members with that epoch would keep stale endpoints.
    """
    draft.change(endpoint_epoch=draft.context.now.wall_ms // 1000 % INT_MAX)
    for member in list(draft.group.members.values()):
        draft.renew_session(member.id)
        if member.state is StreamsMemberState.UNREVOKED_TASKS:
            deadline_ms = draft.now_ms + member.rebalance_timeout_ms
            draft.change_member(member.id, rebalance_deadline_ms=deadline_ms)


def late_members(group: StreamsGroup, now_ms: int) -> list[str]:
    """The members whose session, or time to give up tasks, is over."""
    return [each.id for each in group.members.values() if each.next_deadline_ms() <= now_ms]
