"""Tasks of a topology, and which of them a member has."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeAlias

import msgspec


class TaskId(NamedTuple):
    """One partition of a subtopology."""

    subtopology: str
    partition: int


Tasks: TypeAlias = frozenset[TaskId]
NO_TASKS: Tasks = frozenset()


class TaskAssignment(msgspec.Struct, frozen=True):
    """Tasks by role: active ones process records, standbys follow the state of active ones.

    Warm-up tasks are in the protocol but not assigned yet, as in Kafka.
    """

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def __and__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(
            self.active & other.active, self.standby & other.standby, self.warmup & other.warmup
        )

    def __or__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(
            self.active | other.active, self.standby | other.standby, self.warmup | other.warmup
        )

    def __sub__(self, other: "TaskAssignment") -> "TaskAssignment":
        return TaskAssignment(
            self.active - other.active, self.standby - other.standby, self.warmup - other.warmup
        )

    def __le__(self, other: "TaskAssignment") -> bool:
        return not self - other

    @property
    def tasks(self) -> Tasks:
        """The tasks in any role."""
        return self.active | self.standby | self.warmup


NOTHING = TaskAssignment()


class TasksOfSubtopology(Protocol):
    """The tasks of a subtopology in any request or record."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> list[int]: ...


def tasks_of(listed: Iterable[TasksOfSubtopology] | None) -> Tasks:
    return frozenset(
        TaskId(each.subtopology_id, partition)
        for each in listed or ()
        for partition in each.partitions
    )


def by_subtopology(tasks: Tasks) -> list[tuple[str, list[int]]]:
    """The tasks grouped by subtopology and sorted, as in requests and records."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return list(found.items())
