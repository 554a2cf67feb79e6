"""StreamsGroupCurrentMemberAssignmentValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int32


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", tag=0)] = []


class StreamsGroupCurrentMemberAssignmentValue(Message):
    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    active_tasks_pending_revocation: list[TaskIds] = []
    standby_tasks_pending_revocation: list[TaskIds] = []
    warmup_tasks_pending_revocation: list[TaskIds] = []
