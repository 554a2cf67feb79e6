"""The input of a task assignor: members, and the tasks of their topology."""

from collections.abc import Sequence

import msgspec

from penstock.coordinator.group.streams.task import TaskAssignment, TaskId


class StreamsSubscriber(msgspec.Struct, frozen=True):
    """A member as an assignor sees it. Threads of one process share a directory of state."""

    process_id: str
    target: TaskAssignment = TaskAssignment()
    """The member's last target assignment."""
    instance_id: str | None = None
    rack_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    """`client.tag.*` of the application: names and values."""


class TopologyTasks(msgspec.Struct, frozen=True):
    """The tasks to assign."""

    tasks: Sequence[TaskId]
    stateful: frozenset[str]
    """The subtopologies that have state to copy: only their tasks have standbys."""
    standbys: int = 0
    """Copies of each state that the group wants (`streams.num.standby.replicas`)."""

    def with_state(self) -> list[TaskId]:
        return [task for task in self.tasks if task.subtopology in self.stateful]
