"""Guards of groups, their members and their offsets."""

from collections.abc import Callable, Collection, Coroutine
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    GROUP,
    MESSAGES,
    TOPIC,
    TRANSACTION,
    NotAuthorized,
    then,
)
from penstock.broker.authorization.items import (
    answer_by_permission,
    each_item,
    split_by_permission,
    topic_named_or_id,
)
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.authorization.whole import check_cluster
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.turns import NAMES_A_PIECE
from penstock.errors import ErrorCode
from penstock.loop import with_turns
from penstock.security.acl import AclOperation
from penstock.wire.messages import (
    consumer_group_describe as describing_consumers,
)
from penstock.wire.messages import (
    describe_groups as describing_groups,
)
from penstock.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from penstock.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Op = AclOperation


def one_group(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    # Requests of share groups may leave the id out, which their handlers refuse.
    if not access.group(Op.READ, request.group_id or ""):
        raise NotAuthorized(GROUP)
    return handler(request, ctx)


def heartbeat(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    """ConsumerGroupHeartbeat, which also names the subscribed topics."""
    if not access.group(Op.READ, request.group_id):
        raise NotAuthorized(GROUP)
    return when_described(request.subscribed_topic_names or (), request, ctx, handler, access)


def when_described(
    names: Collection[str], request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    """The handler's reply, if all these topics may be described."""
    if len(names) > NAMES_A_PIECE:
        return _when_many_are_described(names, request, ctx, handler, access)
    if not all(access.topic(Op.DESCRIBE, each) for each in names):
        raise NotAuthorized(TOPIC)
    return handler(request, ctx)


async def _when_many_are_described(
    names: Collection[str], request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    async for each in with_turns(names, NAMES_A_PIECE):
        if not access.topic(Op.DESCRIBE, each):
            raise NotAuthorized(TOPIC)
    reply = handler(request, ctx)
    return await reply if isinstance(reply, Coroutine) else reply


def list_groups(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    reply = handler(request, ctx)
    if access.cluster(Op.DESCRIBE, logs=False):
        return reply

    def visible(found: Any) -> Any:
        groups = [e for e in found.groups if access.group(Op.DESCRIBE, e.group_id, logs=False)]
        return replace(found, groups=groups)

    return then(reply, visible)


describe_groups = each_item(
    "groups",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    Refusal(
        lambda name, _: describing_groups.DescribedGroup(
            error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
        )
    ),
    "groups",
    describing_groups.DescribeGroupsResponse,
)
_describe_consumer_groups = each_item(
    "group_ids",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    Refusal(
        lambda name, _: describing_consumers.DescribedGroup(
            error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
        )
    ),
    "groups",
    describing_consumers.ConsumerGroupDescribeResponse,
)


def describe_consumer_groups(
    request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    def names(group: Any) -> set[str]:
        return {
            topic
            for member in group.members
            for topic in (
                *member.subscribed_topic_names,
                *(each.topic_name for each in member.assignment.topic_partitions),
                *(each.topic_name for each in member.target_assignment.topic_partitions),
            )
        }

    reply = _describe_consumer_groups(request, ctx, handler, access)
    return without_hidden_groups(reply, access, names, describing_consumers.DescribedGroup)


def without_hidden_groups(
    reply: Any, access: Access, names: Callable[[Any], set[str]], described: Callable[..., Any]
) -> Any:
    """Replace groups with topics that the client may not describe by an error."""

    def shown(group: Any) -> Any:
        if all(access.topic(Op.DESCRIBE, each, logs=False) for each in names(group)):
            return group
        return described(
            error_code=TOPIC,
            error_message="The group has described topic(s) that the client is not authorized to "
            "describe.",
            group_id=group.group_id,
        )

    return then(reply, lambda found: replace(found, groups=[shown(each) for each in found.groups]))


delete_groups = each_item(
    "groups_names",
    lambda access, name, _: access.group(Op.DELETE, name),
    Refusal(lambda name, _: DeletableGroupResult(name, GROUP, MESSAGES[GROUP])),
    "results",
    DeleteGroupsResponse,
)


def _not_committed(code: ErrorCode) -> Refusal:
    return Refusal(
        lambda topic, parts: OffsetCommitResponseTopic(topic.name, topic.topic_id, parts),
        attrgetter("partitions"),
        lambda _, each: OffsetCommitResponsePartition(each.partition_index, code),
    )


_commit_topics = each_item(
    "topics", topic_named_or_id(Op.READ), _not_committed(TOPIC), "topics", OffsetCommitResponse
)


def offset_commit(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.READ, request.group_id):
        return when_refused(
            request.topics, _not_committed(GROUP), lambda found: OffsetCommitResponse(topics=found)
        )
    return _commit_topics(request, ctx, handler, access)


def _not_committed_in_txn(code: ErrorCode) -> Refusal:
    return Refusal(
        lambda topic, parts: TxnOffsetCommitResponseTopic(topic.name, topic.topic_id, parts),
        attrgetter("partitions"),
        lambda _, each: TxnOffsetCommitResponsePartition(each.partition_index, code),
    )


_commit_txn_topics = each_item(
    "topics",
    topic_named_or_id(Op.READ),
    _not_committed_in_txn(TOPIC),
    "topics",
    TxnOffsetCommitResponse,
)


def txn_offset_commit(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    code = None
    if not access.transaction(Op.WRITE, request.transactional_id):
        code = TRANSACTION
    elif not access.group(Op.READ, request.group_id):
        code = GROUP
    if code is not None:
        return when_refused(
            request.topics,
            _not_committed_in_txn(code),
            lambda found: TxnOffsetCommitResponse(topics=found),
        )
    return _commit_txn_topics(request, ctx, handler, access)


_NOT_DELETED = Refusal(
    lambda topic, parts: OffsetDeleteResponseTopic(topic.name, parts),
    attrgetter("partitions"),
    lambda _, each: OffsetDeleteResponsePartition(each.partition_index, TOPIC),
)


def offset_delete(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.DELETE, request.group_id):
        raise NotAuthorized(GROUP)

    def answered(allowed: list[Any], others: list[Any]) -> Any:
        if not others:
            return handler(request, ctx)

        def joined(denied: list[Any]) -> Any:
            reply = handler(replace(request, topics=allowed), ctx)
            return then(reply, lambda found: with_refused(found, "topics", denied))

        return when_refused(others, _NOT_DELETED, joined)

    return answer_by_permission(
        request.topics, lambda each: access.topic(Op.READ, each.name), answered
    )


def with_refused(found: Any, answers: str, denied: list[Any]) -> Any:
    """The response with the refusals; a response with a group error stays as it is."""
    if found.error_code:
        return found
    return replace(found, **{answers: [*getattr(found, answers), *denied]})


def find_coordinator(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if request.key_type not in {0, 1}:
        try:
            check_cluster(access, (Op.CLUSTER_ACTION,))
        except NotAuthorized as error:
            if ctx.version < 4:
                raise
            keys, why = request.coordinator_keys, (error.code, str(error))
            return FindCoordinatorResponse(
                coordinators=[Coordinator(each, -1, "", -1, *why) for each in keys]
            )
        return handler(request, ctx)
    may, code = (
        (access.group, GROUP) if request.key_type == 0 else (access.transaction, TRANSACTION)
    )
    if ctx.version < 4:
        if may(Op.DESCRIBE, request.key):
            return handler(request, ctx)
        return FindCoordinatorResponse(
            error_code=code, error_message=MESSAGES[code], node_id=-1, port=-1
        )
    allowed, denied = split_by_permission(
        request.coordinator_keys, lambda each: may(Op.DESCRIBE, each)
    )
    if not denied:
        return handler(request, ctx)
    refused = [Coordinator(each, -1, "", -1, code, MESSAGES[code]) for each in denied]
    reply = (
        handler(replace(request, coordinator_keys=allowed), ctx)
        if allowed
        else FindCoordinatorResponse()
    )
    return then(reply, lambda found: replace(found, coordinators=[*found.coordinators, *refused]))
