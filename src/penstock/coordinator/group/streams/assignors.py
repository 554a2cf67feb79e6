"""The type of task assignors, and those that a broker offers."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from penstock.coordinator.group.streams.assignor import NAME, sticky
from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import TaskAssignment
from penstock.errors import ConfigError

SETTING = "group.streams.assignors"


class TaskAssignor(Protocol):
    """assignor(members by id, tasks of their topology) -> tasks by member id.

    Pure: it must not change its arguments. Every task is active with exactly one member; a process
    has a task once, so a standby is in another process than its active task.
    """

    def __call__(
        self, members: Mapping[str, StreamsSubscriber], topology: TopologyTasks, /
    ) -> Mapping[str, TaskAssignment]: ...


BUILT_IN: Mapping[str, TaskAssignor] = {NAME: sticky}


class TaskAssignors(msgspec.Struct, frozen=True):
    """The assignors that a broker offers; groups that name none use the first."""

    by_name: Mapping[str, TaskAssignor]

    @property
    def default(self) -> str:
        return next(iter(self.by_name))

    def chosen(self, wanted: str | None) -> str:
        """The name of a group's assignor; the default if `wanted` is None or not offered.

        As in Kafka 4.4: a group must not stop because a broker has restarted without its assignor.
        """
        return wanted if wanted is not None and wanted in self.by_name else self.default


def named(names: Iterable[str], known: Mapping[str, TaskAssignor] = BUILT_IN) -> TaskAssignors:
    """The assignors that `group.streams.assignors` names, in its order."""
    chosen = list(names)
    missing = [each for each in chosen if each not in known]
    if missing or not chosen:
        raise ConfigError(
            f"{SETTING}: {', '.join(missing) or 'nothing'} is not among {', '.join(known)}"
        )
    return TaskAssignors({each: known[each] for each in chosen})


OFFERED = named(BUILT_IN)
"""The task assignors that a broker offers by default."""
