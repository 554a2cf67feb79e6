"""A member of a streams group: one thread of an application, as a value."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

import msgspec

from penstock.coordinator.group.consumer.member import LEAVE_STATIC_EPOCH, ClassicMemberSettings
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment, TaskId

NO_TOPOLOGY = -1
"""The epoch of the topology of a classic member, which sends none."""


class StreamsMemberState(IntEnum):
    """Values are Kafka's numbers in records."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """The member has not yet revoked all the tasks that it must."""
    UNRELEASED_TASKS = 3
    """The member waits for tasks that other members have not revoked yet."""


class StreamsEndpoint(NamedTuple):
    """The address where an instance answers interactive queries."""

    host: str
    port: int


class TaskPosition(NamedTuple):
    """The position of a task, as its member reports it."""

    task: TaskId
    offset: int


class StreamsGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """`process_id` is that of the instance: its threads share a directory of state."""

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_TOPOLOGY
    process_id: str = ""
    endpoint: StreamsEndpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()

    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    assigned: TaskAssignment = NOTHING
    revoking: TaskAssignment = NOTHING
    epochs: Mapping[TaskId, int] = {}
    """The member epoch in which each active task was assigned: a commit of that epoch or a later
    one is accepted.
    """

    # Soft state, in no record:
    deadline_ms: int = 0
    rebalance_deadline_ms: int | None = None
    offsets: tuple[TaskPosition, ...] = ()
    end_offsets: tuple[TaskPosition, ...] = ()
    classic: ClassicMemberSettings | None = None
    """A classic member's timeout and strategies; None too before it joins at this coordinator."""
    endpoints_told: int | None = None
    """The group's `endpoint_epoch` when a classic member got its assignment; None: it waits for
    one."""

    @property
    def is_away(self) -> bool:
        """Whether it is a static member that has left for a while: its tasks wait for it."""
        return self.epoch == LEAVE_STATIC_EPOCH

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol, while the application migrates."""
        return self.topology_epoch == NO_TOPOLOGY

    @property
    def holds(self) -> TaskAssignment:
        return self.assigned | self.revoking

    def next_deadline_ms(self) -> int:
        return (
            self.deadline_ms
            if self.rebalance_deadline_ms is None
            else min(self.deadline_ms, self.rebalance_deadline_ms)
        )
