"""The records of streams groups, in Kafka's formats."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from penstock.coordinator.group.streams.member import StreamsGroupMember, StreamsMemberState
from penstock.coordinator.group.streams.task import (
    TaskAssignment,
    TaskId,
    Tasks,
    by_subtopology,
    tasks_of,
)
from penstock.errors import ProtocolError
from penstock.wire.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from penstock.wire.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from penstock.wire.messages.streams_group_current_member_assignment_value import (
    TaskIds as CurrentTasks,
)
from penstock.wire.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from penstock.wire.messages.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from penstock.wire.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from penstock.wire.messages.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from penstock.wire.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from penstock.wire.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from penstock.wire.messages.streams_group_target_assignment_member_value import (
    TaskIds as TargetTasks,
)
from penstock.wire.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from penstock.wire.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from penstock.wire.messages.streams_group_topology_key import StreamsGroupTopologyKey
from penstock.wire.messages.streams_group_topology_value import StreamsGroupTopologyValue
from penstock.wire.schema import Message

# Short names for Kafka's records.
EpochKey: TypeAlias = StreamsGroupMetadataKey
EpochValue: TypeAlias = StreamsGroupMetadataValue
MemberKey: TypeAlias = StreamsGroupMemberMetadataKey
MemberValue: TypeAlias = StreamsGroupMemberMetadataValue
TargetEpochKey: TypeAlias = StreamsGroupTargetAssignmentMetadataKey
TargetEpochValue: TypeAlias = StreamsGroupTargetAssignmentMetadataValue
TargetKey: TypeAlias = StreamsGroupTargetAssignmentMemberKey
TargetValue: TypeAlias = StreamsGroupTargetAssignmentMemberValue
CurrentKey: TypeAlias = StreamsGroupCurrentMemberAssignmentKey
CurrentValue: TypeAlias = StreamsGroupCurrentMemberAssignmentValue
TopologyKey: TypeAlias = StreamsGroupTopologyKey
Topology: TypeAlias = StreamsGroupTopologyValue

Key: TypeAlias = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | TopologyKey

STREAMS_KINDS: Mapping[int, tuple[type[Key], type[Message]]] = {
    17: (EpochKey, EpochValue),
    19: (MemberKey, MemberValue),
    20: (TargetEpochKey, TargetEpochValue),
    21: (TargetKey, TargetValue),
    22: (CurrentKey, CurrentValue),
    23: (TopologyKey, Topology),
}
"""Key and value by record type."""

MEMBER_STATES = frozenset(StreamsMemberState)
STREAMS_NUMBERS: Mapping[type[Key], int] = {
    key: number for number, (key, _) in STREAMS_KINDS.items()
}


class StreamsGroupRecord(msgspec.Struct, frozen=True):
    """A new value for one part of a streams group; None removes it."""

    key: Key
    value: Message | None

    @property
    def group(self) -> str:
        return self.key.group_id


def checked_streams(record: StreamsGroupRecord) -> StreamsGroupRecord:
    """Refuse a record with an unknown member state."""
    value = record.value
    if isinstance(value, CurrentValue) and value.state not in MEMBER_STATES:
        raise ProtocolError(f"member state {value.state} is unknown")
    return record


def epoch_record(
    group: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> StreamsGroupRecord:
    configs = [LastAssignmentConfig(*each) for each in assignment_configs.items()]
    value = EpochValue(epoch, metadata_hash, validated_topology_epoch, configs)
    return StreamsGroupRecord(EpochKey(group), value)


def topology_record(group: str, topology: Topology) -> StreamsGroupRecord:
    return StreamsGroupRecord(TopologyKey(group), topology)


def member_record(group: str, member: StreamsGroupMember) -> StreamsGroupRecord:
    return StreamsGroupRecord(
        MemberKey(group, member.id),
        MemberValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if member.endpoint is None else Endpoint(*member.endpoint),
            client_tags=[KeyValue(*each) for each in member.tags],
        ),
    )


def target_epoch_record(group: str, epoch: int, now_ms: int) -> StreamsGroupRecord:
    return StreamsGroupRecord(TargetEpochKey(group), TargetEpochValue(epoch, now_ms))


def target_record(group: str, member_id: str, target: TaskAssignment) -> StreamsGroupRecord:
    active, standby, warmup = (
        [TargetTasks(*each) for each in by_subtopology(tasks)]
        for tasks in (target.active, target.standby, target.warmup)
    )
    return StreamsGroupRecord(TargetKey(group, member_id), TargetValue(active, standby, warmup))


def current_record(group: str, member: StreamsGroupMember) -> StreamsGroupRecord:
    def active(tasks: Tasks) -> list[CurrentTasks]:
        return [
            CurrentTasks(
                subtopology,
                partitions,
                [member.epochs.get(TaskId(subtopology, each), member.epoch) for each in partitions],
            )
            for subtopology, partitions in by_subtopology(tasks)
        ]

    def others(tasks: Tasks) -> list[CurrentTasks]:
        return [CurrentTasks(*each) for each in by_subtopology(tasks)]

    assigned, revoking = member.assigned, member.revoking
    return StreamsGroupRecord(
        CurrentKey(group, member.id),
        CurrentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            active_tasks=active(assigned.active),
            standby_tasks=others(assigned.standby),
            warmup_tasks=others(assigned.warmup),
            active_tasks_pending_revocation=active(revoking.active),
            standby_tasks_pending_revocation=others(revoking.standby),
            warmup_tasks_pending_revocation=others(revoking.warmup),
        ),
    )


def epochs_of(value: CurrentValue) -> dict[TaskId, int]:
    """The epoch in which each active task was assigned; the present one if the record has none."""
    found = {}
    for each in (*value.active_tasks, *value.active_tasks_pending_revocation):
        epochs = each.assignment_epochs or []
        if len(epochs) != len(each.partitions):
            epochs = [value.member_epoch] * len(each.partitions)
        for partition, epoch in zip(each.partitions, epochs, strict=True):
            found[TaskId(each.subtopology_id, partition)] = epoch
    return found


def assigned_tasks(value: CurrentValue | TargetValue) -> TaskAssignment:
    return TaskAssignment(
        tasks_of(value.active_tasks), tasks_of(value.standby_tasks), tasks_of(value.warmup_tasks)
    )


def revoked_tasks(value: CurrentValue) -> TaskAssignment:
    return TaskAssignment(
        tasks_of(value.active_tasks_pending_revocation),
        tasks_of(value.standby_tasks_pending_revocation),
        tasks_of(value.warmup_tasks_pending_revocation),
    )


def member_tombstones(group: str, member_id: str) -> list[StreamsGroupRecord]:
    """A member's tombstones in Kafka's order: current assignment, target assignment, metadata."""
    return [
        StreamsGroupRecord(CurrentKey(group, member_id), None),
        StreamsGroupRecord(TargetKey(group, member_id), None),
        StreamsGroupRecord(MemberKey(group, member_id), None),
    ]
