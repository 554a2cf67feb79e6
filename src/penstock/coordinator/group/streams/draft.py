"""A streams group while one operation on it is being decided."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from penstock.config.group import GroupConfig
from penstock.config.streams import StreamsConfig
from penstock.config.streams_group import StreamsGroupConfig
from penstock.coordinator.group.consumer.group import FIRST_EPOCH, Topics
from penstock.coordinator.group.streams.assignor import NAME as STICKY
from penstock.coordinator.group.streams.assignors import OFFERED, TaskAssignors
from penstock.coordinator.group.streams.group import NO_EPOCH, StreamsGroup, replayed_streams
from penstock.coordinator.group.streams.member import StreamsGroupMember, StreamsMemberState
from penstock.coordinator.group.streams.reconcile import reconciled
from penstock.coordinator.group.streams.records import (
    StreamsGroupRecord,
    Topology,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment
from penstock.coordinator.group.streams.topology import configured, stateful
from penstock.coordinator.group.streams.validation import computed_tasks
from penstock.coordinator.result import Now
from penstock.errors import InvalidRequest

STANDBYS, ASSIGNOR = "num.standby.replicas", "assignor.name"


class StreamsContext(msgspec.Struct, frozen=True):
    """The context of an operation on a streams group."""

    config: StreamsConfig
    settings: StreamsGroupConfig
    topics: Topics
    now: Now
    assignors: TaskAssignors = OFFERED
    group_config: GroupConfig = GroupConfig()
    """The settings of the classic group that this group may become."""

    @property
    def assignor(self) -> str:
        return self.assignors.chosen(self.settings.streams_assignor_name)

    @property
    def assignment_configs(self) -> dict[str, str]:
        """The settings that an assignment depends on; the `sticky` assignor is not named."""
        configs = {STANDBYS: str(self.settings.streams_num_standby_replicas)}
        return configs if self.assignor == STICKY else {**configs, ASSIGNOR: self.assignor}


def new_group(name: str) -> StreamsGroup:
    return StreamsGroup(name, epoch=FIRST_EPOCH)


def returned(member: StreamsGroupMember) -> StreamsGroupMember:
    """The state of a static member that joins again."""
    return msgspec.structs.replace(
        member, epoch=0, previous_epoch=0, state=StreamsMemberState.STABLE, revoking=NOTHING
    )


class StreamsGroupDraft:
    """The group as the operation changes it, and the records that make these changes."""

    def __init__(self, group: StreamsGroup, context: StreamsContext) -> None:
        self.group, self.context, self.before = group, context, group
        self.now_ms = context.now.steady_ms
        self.records: list[StreamsGroupRecord] = []

    def write(self, *records: StreamsGroupRecord) -> None:
        for record in records:
            after = replayed_streams(self.group, record)
            assert after is not None, "an operation writes to a group that exists"
            self.group = after
        self.records += records

    def change(self, **fields: Any) -> None:
        """Change soft state."""
        self.group = msgspec.structs.replace(self.group, **fields)

    def change_member(self, member_id: str, **fields: Any) -> None:
        """Change soft state of a member."""
        member = msgspec.structs.replace(self.group.members[member_id], **fields)
        self.change(members={**self.group.members, member_id: member})

    def replace(self, old: StreamsGroupMember, new_id: str) -> None:
        """A static member is back under another id: it keeps its tasks."""
        name, target = self.group.id, self.group.target.get(old.id, NOTHING)
        new = returned(msgspec.structs.replace(old, id=new_id))
        self.write(*member_tombstones(name, old.id))
        self.write(member_record(name, new), target_record(name, new_id, target))
        self.write(current_record(name, new))

    def renew_session(self, member_id: str) -> None:
        """Start a new session for the member, of the length that its protocol sets."""
        classic = self.group.members[member_id].classic
        timeout_ms = self.context.settings.streams_session_timeout_ms
        if classic is not None:
            timeout_ms = classic.session_timeout_ms
        self.change_member(member_id, deadline_ms=self.now_ms + timeout_ms)

    def put_topology(self, topology: Topology) -> None:
        """Store the group's first topology. An older one is no error: a status reports it."""
        known = self.group.topology
        if known is None:
            self.write(topology_record(self.group.id, topology))
            self.change(topics_seen=None, configured=None)
        elif topology.epoch >= known.epoch and topology != known:
            raise InvalidRequest("Topology updates are not supported yet.")

    def refresh(self, *, bumps: bool) -> None:
        """Start a new epoch if `bumps`, or if topics or settings have changed."""
        group, topics = self.group, self.context.topics
        topology = group.topology
        assert topology is not None, "a group with members has a topology"
        if group.topics_seen is not topics or group.configured is None:
            found = configured(topology, topics)
            self.change(topics_seen=topics, configured=found)
        else:
            found = group.configured
        metadata_hash = group.hash_of(topology, topics)
        validated = NO_EPOCH if found.status else topology.epoch
        configs = self.context.assignment_configs
        is_same = (group.metadata_hash, group.validated_topology_epoch) == (
            metadata_hash,
            validated,
        )
        if bumps or not is_same or group.assignment_configs != configs:
            self.write(epoch_record(group.id, group.epoch + 1, metadata_hash, validated, configs))

    def remove(self, gone: Iterable[str]) -> None:
        """Remove members; the others are reassigned at their next heartbeats."""
        for member_id in gone:
            self.write(*member_tombstones(self.group.id, member_id))
        group = self.group
        self.write(
            epoch_record(
                group.id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        self.change(endpoint_epoch=group.endpoint_epoch + 1)
        if not self.group.members:
            self.change(shutdown_by=None, delayed_until_ms=None)

    @property
    def delay_ms(self) -> int:
        """How long the first members of the group still wait for others."""
        until_ms = self.group.delayed_until_ms
        return 0 if until_ms is None else max(until_ms - self.now_ms, 0)

    @property
    def assigns_in_ms(self) -> int:
        """Time until the next assignment is allowed."""
        if self.group.assigned_ms is None:
            return self.delay_ms
        interval_ms = self.context.settings.streams_assignment_interval_ms
        return max(self.delay_ms, self.group.assigned_ms + interval_ms - self.now_ms, 0)

    def assign(self) -> None:
        """Compute the target assignment if it is older than the group's epoch, and it is time.

        Raises `AssignorFailed` if the assignor fails. A member that changed nothing is not refused
        for that: `delay_next_assignment` lets it go on.
        """
        group = self.group
        assert group.configured is not None, "`refresh` comes before"
        assert group.topology is not None, "a group with members has a topology"
        if group.target_epoch == group.epoch or self.assigns_in_ms > 0:
            return
        subscribers = {
            each.id: StreamsSubscriber(
                each.process_id,
                group.target.get(each.id, NOTHING),
                each.instance_id,
                each.rack_id,
                each.tags,
            )
            for each in group.members.values()
        }
        tasks = () if group.configured.status else group.configured.tasks
        targets: Mapping[str, TaskAssignment] = dict.fromkeys(subscribers, NOTHING)
        if tasks:
            standbys = self.context.settings.streams_num_standby_replicas
            wanted = TopologyTasks(tasks, stateful(group.topology), standbys)
            name = self.context.assignor
            assignor = self.context.assignors.by_name[name]
            targets = computed_tasks(name, assignor, subscribers, wanted)
        for member_id, given in targets.items():
            is_classic = group.members[member_id].is_classic
            target = TaskAssignment(given.active) if is_classic else given
            if group.target.get(member_id) != target:
                self.write(target_record(group.id, member_id, target))
        self.write(target_epoch_record(group.id, group.epoch, self.context.now.wall_ms))
        self.change(delayed_until_ms=None)
        if tasks:  # an assignment without tasks does not delay the next one
            self.delay_next_assignment()

    def delay_next_assignment(self) -> None:
        """Allow the next assignment only after the interval."""
        self.change(assigned_ms=self.now_ms)

    def reconcile(self, member_id: str, owned: TaskAssignment | None) -> None:
        """Move a member one step towards its target assignment."""
        group = self.group
        before = group.members[member_id]
        after = reconciled(
            before,
            group.target.get(member_id, NOTHING),
            group.target_epoch,
            owned,
            [each for each in group.members.values() if each.id != member_id],
        )
        if after == before:
            return
        self.write(current_record(group.id, after))
        revokes = after.state is StreamsMemberState.UNREVOKED_TASKS
        deadline_ms = self.now_ms + after.rebalance_timeout_ms if revokes else None
        self.change_member(member_id, rebalance_deadline_ms=deadline_ms)
        if after.assigned != before.assigned and after.endpoint is not None:
            self.change(endpoint_epoch=group.endpoint_epoch + 1)
