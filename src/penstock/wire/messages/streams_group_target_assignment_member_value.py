"""StreamsGroupTargetAssignmentMemberValue; written by codegen."""

from penstock.wire.schema import Message, int32


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int32] = []


class StreamsGroupTargetAssignmentMemberValue(Message):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
