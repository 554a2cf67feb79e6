"""A streams group, as a value: each record makes a new one."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import msgspec

from penstock.coordinator.group.consumer.group import (
    FIRST_EPOCH,
    NO_HASH,
    Topics,
    topics_hash,
    without,
)
from penstock.coordinator.group.streams.member import (
    StreamsEndpoint,
    StreamsGroupMember,
    StreamsMemberState,
)
from penstock.coordinator.group.streams.records import (
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberValue,
    StreamsGroupRecord,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
    Topology,
    TopologyKey,
    assigned_tasks,
    epochs_of,
    member_tombstones,
    revoked_tasks,
)
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment
from penstock.coordinator.group.streams.topology import (
    ConfiguredTopology,
    source_topics,
    topics_of,
)
from penstock.wire.messages.streams_group_topology_description_update import TopologyDescription

NO_EPOCH = -1


class StreamsGroupState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics are missing, or have wrong numbers of partitions."""
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsGroup(msgspec.Struct, frozen=True):
    """Epoch, topology, members, and the target assignment that members move towards.

    At most one member of the group holds an active task, and at most one member of a process holds
    a task in any role.
    """

    id: str
    epoch: int = 0
    metadata_hash: int = NO_HASH
    validated_topology_epoch: int = NO_EPOCH
    """The topology whose topics are all there; -1: none."""
    assignment_configs: Mapping[str, str] = {}
    """The settings that the target assignment rests on."""
    topology: Topology | None = None
    members: Mapping[str, StreamsGroupMember] = {}
    target_epoch: int = FIRST_EPOCH
    """`FIRST_EPOCH` without a record, which is before the first assignment: members then have this
    epoch.
    """
    target: Mapping[str, TaskAssignment] = {}

    # Soft state, in no record:
    topics_seen: Topics | None = None
    """The topics that `configured` rests on; compared by identity to notice a change."""
    configured: ConfiguredTopology | None = None
    assigned_ms: int | None = None
    """When the last assignment was computed; None: not by this coordinator."""
    delayed_until_ms: int | None = None
    """When the first assignment may be computed: the first members of a group wait for others."""
    shutdown_by: str | None = None
    """The member that has asked all others to shut down."""
    endpoint_epoch: int = 0
    """Grows when the partitions at an endpoint change, for interactive queries."""
    description: TopologyDescription | None = None
    """A member's description of the topology, for people (KIP-1331)."""
    description_due_ms: int = 0
    """When a member may be asked for the description again."""

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.validated_topology_epoch != self.topology.epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        for each in self.members.values():
            if each.epoch != self.target_epoch or each.state is not StreamsMemberState.STABLE:
                return StreamsGroupState.RECONCILING
        return StreamsGroupState.STABLE

    def static_member(self, instance_id: str) -> StreamsGroupMember | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    @property
    def is_classic(self) -> bool:
        """Whether all members use the classic protocol."""
        return all(each.is_classic for each in self.members.values())

    @property
    def subscribed_topics(self) -> frozenset[str]:
        """The topics whose offsets are in use."""
        if self.topology is None or not self.members:
            return frozenset()
        return source_topics(self.topology)

    def hash_of(self, topology: Topology, topics: Topics) -> int:
        return topics_hash(topics_of(topology), topics)

    def next_deadline_ms(self) -> int | None:
        return min((each.next_deadline_ms() for each in self.members.values()), default=None)

    def tombstones(self) -> Iterator[StreamsGroupRecord]:
        """The tombstones that remove the group."""
        for member_id in self.members:
            yield from member_tombstones(self.id, member_id)
        yield StreamsGroupRecord(TargetEpochKey(self.id), None)
        yield StreamsGroupRecord(TopologyKey(self.id), None)
        yield StreamsGroupRecord(EpochKey(self.id), None)


def replayed_streams(group: StreamsGroup, record: StreamsGroupRecord) -> StreamsGroup | None:
    """The group after a record; None: it is gone. Compaction may leave records in any order."""

    def change(**fields: Any) -> StreamsGroup:
        return msgspec.structs.replace(group, **fields)

    def put(member_id: str, **fields: Any) -> StreamsGroup:
        known = group.members.get(member_id) or StreamsGroupMember(id=member_id)
        member = msgspec.structs.replace(known, **fields)
        return change(members={**group.members, member_id: member})

    match record.key, record.value:
        case EpochKey(), EpochValue(epoch, metadata_hash, validated, configs):
            return change(
                epoch=epoch,
                metadata_hash=metadata_hash,
                validated_topology_epoch=validated,
                assignment_configs={each.key: each.value for each in configs or ()},
            )
        case EpochKey(), None:
            return None
        case TopologyKey(), topology if topology is None or isinstance(topology, Topology):
            return change(topology=topology)
        case MemberKey(_, member_id), MemberValue() as value:
            endpoint = value.user_endpoint
            return put(
                member_id,
                instance_id=value.instance_id,
                rack_id=value.rack_id,
                client_id=value.client_id,
                client_host=value.client_host,
                rebalance_timeout_ms=value.rebalance_timeout_ms,
                topology_epoch=value.topology_epoch,
                process_id=value.process_id,
                endpoint=None
                if endpoint is None
                else StreamsEndpoint(endpoint.host, endpoint.port),
                tags=tuple((each.key, each.value) for each in value.client_tags),
            )
        case MemberKey(_, member_id), None:
            return change(members=without(group.members, member_id))
        case TargetEpochKey(), TargetEpochValue(epoch):
            return change(target_epoch=epoch)
        case TargetEpochKey(), None:
            return change(target_epoch=FIRST_EPOCH)
        case TargetKey(_, member_id), TargetValue() as value:
            return change(target={**group.target, member_id: assigned_tasks(value)})
        case TargetKey(_, member_id), None:
            return change(target=without(group.target, member_id))
        case CurrentKey(_, member_id), CurrentValue() as value:
            return put(
                member_id,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=StreamsMemberState(value.state),
                assigned=assigned_tasks(value),
                revoking=revoked_tasks(value),
                epochs=epochs_of(value),
            )
        case CurrentKey(_, member_id), None if member_id in group.members:
            return put(member_id, assigned=NOTHING, revoking=NOTHING, epochs={})
        case _:
            return group
