"""Moves a member from its present to its target tasks: it gives up first, then gets more."""

from collections.abc import Iterable

import msgspec

from penstock.coordinator.group.streams.member import StreamsGroupMember, StreamsMemberState
from penstock.coordinator.group.streams.task import NOTHING, TaskAssignment


def reconciled(
    member: StreamsGroupMember,
    target: TaskAssignment,
    target_epoch: int,
    owned: TaskAssignment | None,
    others: Iterable[StreamsGroupMember],
) -> StreamsGroupMember:
    """The member after its next step; `owned` are the tasks that it reports, if it does."""
    match member.state:
        case StreamsMemberState.STABLE if member.epoch == target_epoch:
            return member
        case StreamsMemberState.UNREVOKED_TASKS if owned is None or owned & member.revoking:
            return member
    retained = member.assigned & target
    revokes = member.assigned - target
    if revokes and (owned is None or owned & revokes):
        return msgspec.structs.replace(
            member,
            state=StreamsMemberState.UNREVOKED_TASKS,
            assigned=retained,
            revoking=revokes,
        )
    missing = target - retained
    free = _free(missing, member.process_id, others) if missing else NOTHING
    assigned = retained | free
    return msgspec.structs.replace(
        member,
        state=StreamsMemberState.STABLE if free == missing else StreamsMemberState.UNRELEASED_TASKS,
        epoch=target_epoch,
        previous_epoch=member.previous_epoch if member.epoch == target_epoch else member.epoch,
        assigned=assigned,
        revoking=NOTHING,
        epochs={task: member.epochs.get(task, target_epoch) for task in assigned.active},
    )


def _free(
    missing: TaskAssignment, process_id: str, others: Iterable[StreamsGroupMember]
) -> TaskAssignment:
    """The missing tasks that no other member holds.

    An active task may be held once in the group. Any task may be held once in a process, because
    its threads share one state directory.
    """
    for other in others:
        held = other.holds
        if other.process_id == process_id:
            missing -= TaskAssignment(held.tasks, held.tasks, held.tasks)
        else:
            missing -= TaskAssignment(held.active)
    return missing
