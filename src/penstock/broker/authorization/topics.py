"""Guards of topics. Lists leave out hidden topics; requested names are refused."""

from collections.abc import Coroutine, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    MESSAGES,
    REFUSALS,
    TOPIC,
    then,
)
from penstock.broker.authorization.items import (
    answer_by_permission,
    each_item,
    split_by_permission,
    split_in_slices,
    topic_named,
)
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.authorization.routes import may_route
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.turns import NAMES_A_PIECE
from penstock.errors import ErrorCode
from penstock.metadata.topic_names import INTERNAL_TOPICS
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID
from penstock.wire.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from penstock.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from penstock.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from penstock.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from penstock.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.wire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from penstock.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

Op = AclOperation


def metadata(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    image = ctx.services.cluster.image
    if request.topics is None or (ctx.version == 0 and not request.topics):
        visible = [name for name in image.topics if access.topic(Op.DESCRIBE, name, logs=False)]
        if not visible:
            return then(handler(request, ctx), lambda found: replace(found, topics=[]))
        named = [MetadataRequestTopic(name=name) for name in visible]
        return handler(replace(request, topics=named), ctx)
    if len(request.topics) > NAMES_A_PIECE:
        return _metadata_of_many(request, ctx, handler, access)
    allowed, denied = _described(request.topics, request, ctx, access)
    return _with_metadata(request, ctx, handler, allowed, denied)


async def _metadata_of_many(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    allowed, denied = await split_in_slices(
        request.topics, lambda some: _described(some, request, ctx, access)
    )
    reply = _with_metadata(request, ctx, handler, allowed, denied)
    return await reply if isinstance(reply, Coroutine) else reply


def _described(
    topics: Sequence[MetadataRequestTopic], request: Any, ctx: Context, access: Access
) -> tuple[list[MetadataRequestTopic], list[MetadataResponseTopic]]:
    """The topics that the client may describe or create, and refusals of the others."""
    image = ctx.services.cluster.image
    allowed, denied = [], []
    for each in topics:
        name = image.topic_names.get(each.topic_id) if each.topic_id != NO_UUID else each.name
        if name is None or access.topic(Op.DESCRIBE, name):
            allowed.append(each)
        else:
            denied.append(not_authorized(each, name))
    if request.allow_auto_topic_creation and (
        ctx.services.config.controller.auto_create_topics_enable
    ):
        missing = any(each.name and each.name not in image.topics for each in allowed)
        if missing and not access.cluster(Op.CREATE, logs=False):
            allowed, others = split_by_permission(
                allowed,
                lambda each: (
                    not each.name or each.name in image.topics or access.topic(Op.CREATE, each.name)
                ),
            )
            denied += [not_authorized(each, each.name or "") for each in others]
    return allowed, denied


def _with_metadata(
    request: Any,
    ctx: Context,
    handler: AnyHandler,
    allowed: list[MetadataRequestTopic],
    denied: list[MetadataResponseTopic],
) -> Any:
    if not denied:
        return handler(request, ctx)
    if ctx.version == 0 and not allowed:  # an empty list would mean all topics
        unchanged = replace(request, allow_auto_topic_creation=False)
        return then(handler(unchanged, ctx), lambda found: replace(found, topics=denied))
    reply = handler(replace(request, topics=allowed), ctx)
    return then(reply, lambda found: replace(found, topics=[*found.topics, *denied]))


def not_authorized(asked: MetadataRequestTopic, name: str) -> MetadataResponseTopic:
    """A refusal that does not reveal whether the topic exists."""
    is_by_id = asked.topic_id != NO_UUID
    return MetadataResponseTopic(
        error_code=TOPIC,
        name=None if is_by_id else name,
        topic_id=asked.topic_id,
        is_internal=name in INTERNAL_TOPICS,
    )


NOT_DESCRIBED = Refusal(
    lambda topic, _: DescribeTopicPartitionsResponseTopic(
        error_code=TOPIC, name=topic.name, is_internal=topic.name in INTERNAL_TOPICS
    )
)


def describe_topic_partitions(
    request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    if not request.topics:
        # All topics, page by page: hidden names are removed before the limit applies.
        image = ctx.services.cluster.image
        visible = [each for each in image.topics if access.topic(Op.DESCRIBE, each, logs=False)]
        if len(visible) == len(image.topics):
            return handler(request, ctx)
        cursor = request.cursor
        if cursor is not None:
            visible = [each for each in visible if each >= cursor.topic_name]
            if cursor.topic_name not in visible:
                cursor = None
        if not visible:
            return DescribeTopicPartitionsResponse()
        named = [TopicRequest(name=each) for each in visible]
        return handler(replace(request, topics=named, cursor=cursor), ctx)

    def answered(allowed: list[Any], others: list[Any]) -> Any:
        if not others:
            return handler(request, ctx)

        def joined(denied: list[Any]) -> Any:
            if not allowed:
                return DescribeTopicPartitionsResponse(topics=denied)
            reply = handler(replace(request, topics=allowed), ctx)
            return then(reply, lambda found: replace(found, topics=[*found.topics, *denied]))

        return when_refused(others, NOT_DESCRIBED, joined)

    return answer_by_permission(
        request.topics, lambda each: access.topic(Op.DESCRIBE, each.name), answered
    )


def create_topics(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def shown(response: CreateTopicsResponse) -> CreateTopicsResponse:
        """Show settings only to clients that may describe them."""
        return replace(
            response,
            topics=[
                each
                if each.error_code or access.topic(Op.DESCRIBE_CONFIGS, each.name, logs=False)
                else replace(
                    each,
                    topic_config_error_code=TOPIC,
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[],
                )
                for each in response.topics
            ],
        )

    may_create_all = access.cluster(Op.CREATE, logs=False)
    guarded = each_item(
        "topics",
        lambda access, topic, _: (
            (may_create_all or access.topic(Op.CREATE, topic.name))
            and may_route(access, topic.name, topic.configs)
        ),
        Refusal(
            lambda topic, _: CreatableTopicResult(
                name=topic.name, error_code=TOPIC, error_message="Authorization failed."
            )
        ),
        "topics",
        CreateTopicsResponse,
    )
    return then(guarded(request, ctx, handler, access), shown)


def delete_topics(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    image = ctx.services.cluster.image

    def may_delete(name: str) -> bool:
        """Whether the client may delete the topic. A client that may describe an unknown topic gets
        UNKNOWN_TOPIC_OR_PARTITION from here: the controller may know the topic by now, and does not
        check permissions again.
        """
        if name in image.topics or not access.topic(Op.DESCRIBE, name, logs=False):
            return access.topic(Op.DELETE, name)
        return access.topic(Op.DELETE, name, logs=False)

    def refused(name: str) -> DeletableTopicResult:
        is_unknown = name not in image.topics and access.topic(Op.DESCRIBE, name, logs=False)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_unknown else TOPIC
        return DeletableTopicResult(name, NO_UUID, code, REFUSALS[code])

    allowed_names, others = split_by_permission(request.topic_names, may_delete)
    denied = [refused(each) for each in others]
    allowed = []
    for each in request.topics:
        if each.name is not None or each.topic_id == NO_UUID:
            if each.name is None or may_delete(each.name):
                allowed.append(each)
            else:
                denied.append(replace(refused(each.name), topic_id=each.topic_id))
            continue
        name = image.topic_names.get(each.topic_id)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            denied.append(DeletableTopicResult(None, each.topic_id, code, REFUSALS[code]))
        elif may_delete(name):
            allowed.append(each)
        else:
            # Only clients that may describe the topic see the name behind the id.
            shown = name if access.topic(Op.DESCRIBE, name, logs=False) else None
            denied.append(DeletableTopicResult(shown, each.topic_id, TOPIC, MESSAGES[TOPIC]))
    if not denied:
        return handler(request, ctx)
    if not allowed and not allowed_names:
        return DeleteTopicsResponse(responses=denied)
    reply = handler(replace(request, topics=allowed, topic_names=allowed_names), ctx)
    return then(reply, lambda found: replace(found, responses=[*found.responses, *denied]))


list_offsets = each_item(
    "topics",
    topic_named(Op.DESCRIBE),
    Refusal(
        lambda topic, parts: ListOffsetsTopicResponse(topic.name, parts),
        attrgetter("partitions"),
        lambda _, each: ListOffsetsPartitionResponse(each.partition_index, TOPIC),
    ),
    "topics",
    ListOffsetsResponse,
)
delete_records = each_item(
    "topics",
    topic_named(Op.DELETE),
    Refusal(
        lambda topic, parts: DeleteRecordsTopicResult(topic.name, parts),
        attrgetter("partitions"),
        lambda _, each: DeleteRecordsPartitionResult(each.partition_index, -1, TOPIC),
    ),
    "topics",
    DeleteRecordsResponse,
)
create_partitions = each_item(
    "topics",
    topic_named(Op.ALTER),
    Refusal(lambda topic, _: CreatePartitionsTopicResult(topic.name, TOPIC, MESSAGES[TOPIC])),
    "results",
    CreatePartitionsResponse,
)
describe_producers = each_item(
    "topics",
    topic_named(Op.READ),
    Refusal(
        lambda topic, parts: TopicResponse(topic.name, parts),
        attrgetter("partition_indexes"),
        lambda _, index: PartitionResponse(index, TOPIC, MESSAGES[TOPIC]),
    ),
    "topics",
    DescribeProducersResponse,
)
_epoch_of_topics = each_item(
    "topics",
    lambda access, topic, _: access.topic(Op.DESCRIBE, topic.topic),
    Refusal(
        lambda topic, parts: OffsetForLeaderTopicResult(topic.topic, parts),
        attrgetter("partitions"),
        lambda _, each: EpochEndOffset(TOPIC, each.partition),
    ),
    "topics",
    OffsetForLeaderEpochResponse,
)


def offset_for_leader_epoch(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if access.cluster(Op.CLUSTER_ACTION, logs=False):
        return handler(request, ctx)
    return _epoch_of_topics(request, ctx, handler, access)
