"""DeleteGroups (key 42, v0-v3): delete groups without members, with their offsets and state.

Refused: groups that have members, or do not exist.
"""

from collections.abc import Coroutine

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, replied
from penstock.broker.translate.share_groups import delete_state, lock_of
from penstock.coordinator.result import EmptyReply
from penstock.errors import KafkaError
from penstock.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

Reply = DeleteGroupsResponse | Parked[DeleteGroupsResponse]


def delete_groups(
    request: DeleteGroupsRequest, ctx: Context
) -> Reply | Coroutine[None, None, Reply]:
    names = list(dict.fromkeys(request.groups_names))
    shares = [each for each in names if ctx.services.coordination.groups.is_share(each)]
    return after_state(names, shares, ctx) if shares else deleted(names, ctx, {})


async def after_state(names: list[str], shares: list[str], ctx: Context) -> Reply:
    """Delete the state of share groups first: if that fails, the group remains and can be deleted
    again.
    """
    failed: dict[str, KafkaError] = {}
    groups = ctx.services.coordination.groups
    for name in shares:
        try:
            async with lock_of(name, ctx):
                group = await replied(groups.next_share_epoch(name), ctx)
                refused = await delete_state(name, group.initialized, ctx)
                if refused is not None:
                    raise refused
        except KafkaError as error:
            failed[name] = error
    return deleted(names, ctx, failed)


def deleted(names: list[str], ctx: Context, failed: dict[str, KafkaError]) -> Reply:
    rest = [name for name in names if name not in failed]
    pending_replies = [ctx.services.coordination.groups.delete_group(name) for name in rest]

    def respond(replies: list[EmptyReply | KafkaError]) -> DeleteGroupsResponse:
        found = dict(zip(rest, replies, strict=True)) | failed
        return DeleteGroupsResponse(results=[result(name, found[name]) for name in names])

    return answered(pending_replies, respond, ctx)


def result(name: str, reply: EmptyReply | KafkaError) -> DeletableGroupResult:
    if isinstance(reply, KafkaError):
        return DeletableGroupResult(group_id=name, error_code=reply.code, error_message=str(reply))
    return DeletableGroupResult(group_id=name)
