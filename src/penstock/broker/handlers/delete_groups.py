"""DeleteGroups (key 42, v0-v3): delete groups without members, and their offsets.

Refused: groups that have members, or do not exist.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.result import EmptyReply
from penstock.errors import KafkaError
from penstock.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(
    request: DeleteGroupsRequest, ctx: Context
) -> DeleteGroupsResponse | Parked[DeleteGroupsResponse]:
    names = list(dict.fromkeys(request.groups_names))
    pending_replies = [ctx.services.coordination.groups.delete_group(name) for name in names]

    def respond(replies: list[EmptyReply | KafkaError]) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[result(name, reply) for name, reply in zip(names, replies, strict=True)]
        )

    return answered(pending_replies, respond, ctx)


def result(name: str, reply: EmptyReply | KafkaError) -> DeletableGroupResult:
    if isinstance(reply, KafkaError):
        return DeletableGroupResult(group_id=name, error_code=reply.code, error_message=str(reply))
    return DeletableGroupResult(group_id=name)
