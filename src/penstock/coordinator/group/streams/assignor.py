"""The sticky task assignor: a task stays with its member, or goes to where its state is.

Members get equally many active tasks, and then equally many tasks. Standbys are in other processes
than the active task and each other.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.coordinator.group.streams.subscriber import StreamsSubscriber, TopologyTasks
from penstock.coordinator.group.streams.task import NO_TASKS, TaskAssignment, TaskId

NAME = "sticky"


class _Load(msgspec.Struct):
    """The tasks assigned to a member so far."""

    id: str
    process_id: str
    active: set[TaskId]
    standby: set[TaskId]

    @property
    def total(self) -> int:
        return len(self.active) + len(self.standby)


def sticky(
    members: Mapping[str, StreamsSubscriber], topology: TopologyTasks, /
) -> dict[str, TaskAssignment]:
    tasks = topology.tasks
    loads = {
        name: _Load(name, each.process_id, set(), set()) for name, each in sorted(members.items())
    }
    if loads and tasks:
        _assign_active(members, loads, tasks)
        _assign_standbys(members, loads, topology.with_state(), topology.standbys)
    return {
        name: TaskAssignment(frozenset(each.active), frozenset(each.standby) or NO_TASKS)
        for name, each in loads.items()
    }


def _assign_active(
    members: Mapping[str, StreamsSubscriber], loads: Mapping[str, _Load], tasks: Sequence[TaskId]
) -> None:
    """Each member gets the same number of tasks; the remainder gives some members one more."""
    least, extra = divmod(len(tasks), len(loads))

    def has_room(load: _Load) -> bool:
        return len(load.active) < least or (len(load.active) == least and extra > 0)

    def give(load: _Load, task: TaskId) -> None:
        nonlocal extra
        extra -= len(load.active) == least
        load.active.add(task)

    waiting = list(tasks)
    # Prefer the member where a task is active, then one that has its state.
    for had in (
        {task: name for name, each in members.items() for task in each.target.active},
        {task: name for name, each in sorted(members.items()) for task in each.target.standby},
    ):
        left = []
        for task in waiting:
            load = loads.get(had.get(task, ""))
            if load is not None and has_room(load):
                give(load, task)
            else:
                left.append(task)
        waiting = left
    for task in waiting:
        give(_least_loaded([each for each in loads.values() if has_room(each)], loads), task)


def _assign_standbys(
    members: Mapping[str, StreamsSubscriber],
    loads: Mapping[str, _Load],
    tasks: Sequence[TaskId],
    standbys: int,
) -> None:
    processes = {each.process_id for each in loads.values()}
    standbys = min(standbys, len(processes) - 1)
    if standbys <= 0:
        return
    copied = frozenset(tasks)
    holders = {task: {each.process_id} for each in loads.values() for task in each.active & copied}
    # Former standbys first, then a former active task: their state is there.
    for role in ("standby", "active"):
        for name, each in members.items():
            load = loads[name]
            for task in getattr(each.target, role):
                held = holders.get(task, processes)
                if load.process_id not in held and len(held) <= standbys:
                    load.standby.add(task)
                    held.add(load.process_id)
    for task in tasks:
        while len(holders[task]) <= standbys:
            allowed = [each for each in loads.values() if each.process_id not in holders[task]]
            load = _least_loaded(allowed, loads)
            load.standby.add(task)
            holders[task].add(load.process_id)
    while _even_out(loads, holders):
        pass


def _even_out(loads: Mapping[str, _Load], holders: Mapping[TaskId, set[str]]) -> bool:
    """Move standbys to members that still have fewer tasks afterwards; whether any moved.

    Each move makes the members more equal, so this ends, and the next assignment keeps the result.
    """
    moved = False
    for load in loads.values():
        least = min(each.total for each in loads.values())
        for task in sorted(load.standby):
            if least + 1 >= load.total:
                break
            others = holders[task] - {load.process_id}
            to = min(
                (each for each in loads.values() if each.process_id not in others),
                key=lambda each: (each.total, each.id),
            )
            if to.total + 1 < load.total:
                load.standby.remove(task)
                to.standby.add(task)
                holders[task].remove(load.process_id)
                holders[task].add(to.process_id)
                moved = True
    return moved


def _least_loaded(allowed: Iterable[_Load], loads: Mapping[str, _Load]) -> _Load:
    """The member with the fewest tasks, in the process with the fewest tasks per member."""
    totals: dict[str, list[int]] = {}
    for each in loads.values():
        totals.setdefault(each.process_id, []).append(each.total)
    return min(
        allowed,
        key=lambda each: (
            sum(totals[each.process_id]) / len(totals[each.process_id]),
            each.total,
            each.id,
        ),
    )
