"""Runs a task assignor and validates what it returns: it may be user code."""

import logging
from collections.abc import Mapping

from penstock.coordinator.group.consumer.errors import AssignorFailed
from penstock.coordinator.group.streams.assignors import TaskAssignor
from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment, TaskId, Tasks

logger = logging.getLogger(__name__)


class InvalidTaskAssignment(Exception):
    """The assignor returned tasks that members cannot have."""


def computed_tasks(
    name: str,
    assignor: TaskAssignor,
    members: Mapping[str, StreamsSubscriber],
    topology: TopologyTasks,
) -> Mapping[str, TaskAssignment]:
    """The tasks of each member. Raises and logs `AssignorFailed` if the assignor fails."""
    try:
        return validated_tasks(assignor(members, topology), members, topology)
    except Exception as error:  # the boundary around user code
        logger.exception("assignor %s failed; the group keeps its tasks", name)
        raise AssignorFailed(f"assignor {name} failed: {type(error).__name__}: {error}") from error


def validated_tasks(
    assignments: Mapping[str, TaskAssignment],
    members: Mapping[str, StreamsSubscriber],
    topology: TopologyTasks,
) -> dict[str, TaskAssignment]:
    """Tasks for each member, if every task is active exactly once and no process has one twice.

    Members that are left out get none.
    """
    strangers = sorted(assignments.keys() - members.keys())
    if strangers:
        raise InvalidTaskAssignment(f"there are no members {', '.join(strangers)}")
    found = dict.fromkeys(members, NOTHING)
    for member_id, given in assignments.items():
        if given.warmup:
            raise InvalidTaskAssignment(f"{member_id} has warm-up tasks, which no client runs yet")
        found[member_id] = TaskAssignment(_tasks(given.active), _tasks(given.standby))
    _check_active(found, topology)
    _check_processes(found, members, frozenset(topology.with_state()))
    return found


def _tasks(given: Tasks) -> Tasks:
    """The tasks as a frozen set of `TaskId`, whatever pairs user code has put together."""
    return frozenset(TaskId(*each) for each in given)


def _check_active(found: Mapping[str, TaskAssignment], topology: TopologyTasks) -> None:
    known, holders = frozenset(topology.tasks), dict[TaskId, str]()
    for member_id, given in found.items():
        for task in given.active:
            if task not in known:
                raise InvalidTaskAssignment(f"there is no task {_shown(task)}")
            holder = holders.setdefault(task, member_id)
            if holder != member_id:
                raise InvalidTaskAssignment(
                    f"task {_shown(task)} is active with {holder} and {member_id}"
                )
    left_out = known - holders.keys()
    if left_out:
        raise InvalidTaskAssignment(f"task {_shown(min(left_out))} is active on no member")


def _check_processes(
    found: Mapping[str, TaskAssignment],
    members: Mapping[str, StreamsSubscriber],
    stateful: Tasks,
) -> None:
    """A process has one directory of state, where a task can be once."""
    at = {
        (members[member_id].process_id, task)
        for member_id, given in found.items()
        for task in given.active
    }
    for member_id, given in found.items():
        process_id = members[member_id].process_id
        for task in given.standby:
            if task not in stateful:
                raise InvalidTaskAssignment(f"there is no task {_shown(task)} with state to copy")
            if (process_id, task) in at:
                raise InvalidTaskAssignment(
                    f"standby {_shown(task)} of {member_id} is in a process that has the task"
                )
            at.add((process_id, task))


def _shown(task: TaskId) -> str:
    return f"{task.subtopology}_{task.partition}"
