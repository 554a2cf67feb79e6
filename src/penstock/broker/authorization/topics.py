"""Guards of topics. A list leaves out what may not be seen; a name that was given is refused."""

from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    MESSAGES,
    TOPIC,
    TRANSACTION,
    then,
)
from penstock.broker.authorization.items import (
    each_item,
    parted,
    topic_named,
    topic_named_or_id,
)
from penstock.broker.context import AnyHandler, Context
from penstock.errors import ErrorCode, ProtocolError
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
from penstock.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

Op = AclOperation


TRANSACTIONAL_AT, TRANSACTIONAL = 22, 0x10
"""The byte of a batch with the bit that says that it is part of a transaction."""


def produce(request: ProduceRequest, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if request.transactional_id is not None or has_transactional_records(request):
        # The batches decide, not the request's field (CVE-2018-17196).
        name = request.transactional_id
        if name is None or not access.transaction(Op.WRITE, name):
            return produce_refused(request, TRANSACTION)
    may = topic_named_or_id(Op.WRITE)
    allowed, denied = parted(request.topic_data, lambda each: may(access, each, ctx))
    if not denied:
        return handler(request, ctx)
    if request.acks == 0:
        raise ProtocolError("acks=0 cannot be answered: not authorized")
    refused = [topic_not_produced(each, TOPIC) for each in denied]
    reply = handler(replace(request, topic_data=allowed), ctx) if allowed else ProduceResponse()
    return then(reply, lambda found: replace(found, responses=[*found.responses, *refused]))


def has_transactional_records(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is not None and len(records) > TRANSACTIONAL_AT:
                view = memoryview(records)  # type: ignore[arg-type]
                if view[TRANSACTIONAL_AT] & TRANSACTIONAL:
                    return True
    return False


def produce_refused(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    if request.acks == 0:
        raise ProtocolError("acks=0 cannot be answered: not authorized")
    return ProduceResponse(
        responses=[topic_not_produced(each, code) for each in request.topic_data]
    )


def topic_not_produced(topic: Any, code: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(
                index=each.index, error_code=code, base_offset=-1, error_message=MESSAGES[code]
            )
            for each in topic.partition_data
        ],
    )


def metadata(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    image = ctx.services.cluster.image
    if request.topics is None or (ctx.version == 0 and not request.topics):
        visible = [name for name in image.topics if access.topic(Op.DESCRIBE, name, logs=False)]
        if not visible:
            return then(handler(request, ctx), lambda found: replace(found, topics=[]))
        named = [MetadataRequestTopic(name=name) for name in visible]
        return handler(replace(request, topics=named), ctx)
    allowed, denied = [], []
    for each in request.topics:
        name = image.topic_names.get(each.topic_id) if each.topic_id != NO_UUID else each.name
        if name is None or access.topic(Op.DESCRIBE, name):
            allowed.append(each)
        else:
            denied.append(topic_unknown(each, name))
    if request.allow_auto_topic_creation and (
        ctx.services.config.controller.auto_create_topics_enable
    ):
        missing = any(each.name and each.name not in image.topics for each in allowed)
        if missing and not access.cluster(Op.CREATE, logs=False):
            allowed, others = parted(
                allowed,
                lambda each: (
                    not each.name or each.name in image.topics or access.topic(Op.CREATE, each.name)
                ),
            )
            denied += [topic_unknown(each, each.name or "") for each in others]
    if not denied:
        return handler(request, ctx)
    if ctx.version == 0 and not allowed:  # which would mean all of them
        return then(handler(request, ctx), lambda found: replace(found, topics=denied))
    reply = handler(replace(request, topics=allowed), ctx)
    return then(reply, lambda found: replace(found, topics=[*found.topics, *denied]))


def topic_unknown(asked: MetadataRequestTopic, name: str) -> MetadataResponseTopic:
    """Whether there is such a topic is not told."""
    is_by_id = asked.topic_id != NO_UUID
    return MetadataResponseTopic(
        error_code=TOPIC,
        name=None if is_by_id else name,
        topic_id=asked.topic_id,
        is_internal=name in INTERNAL_TOPICS,
    )


def describe_topic_partitions(
    request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    if not request.topics:
        # All topics, page by page: names that may not be seen are left out before the limit counts.
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
    allowed, others = parted(request.topics, lambda each: access.topic(Op.DESCRIBE, each.name))
    if not others:
        return handler(request, ctx)
    denied = [
        DescribeTopicPartitionsResponseTopic(
            error_code=TOPIC, name=each.name, is_internal=each.name in INTERNAL_TOPICS
        )
        for each in others
    ]
    if not allowed:
        return DescribeTopicPartitionsResponse(topics=denied)
    reply = handler(replace(request, topics=allowed), ctx)
    return then(reply, lambda found: replace(found, topics=[*found.topics, *denied]))


def create_topics(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def shown(response: CreateTopicsResponse) -> CreateTopicsResponse:
        """Settings only to those that may see them."""
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

    if access.cluster(Op.CREATE, logs=False):
        return then(handler(request, ctx), shown)
    guarded = each_item(
        "topics",
        topic_named(Op.CREATE),
        lambda topic, _: CreatableTopicResult(
            name=topic.name, error_code=TOPIC, error_message="Authorization failed."
        ),
        "topics",
        CreateTopicsResponse,
    )
    return then(guarded(request, ctx, handler, access), shown)


def delete_topics(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    image = ctx.services.cluster.image
    names = image.topic_names

    def may_delete(name: str) -> bool:
        """Who may see that there is no such topic is told so."""
        is_missing = name not in image.topics and access.topic(Op.DESCRIBE, name, logs=False)
        return is_missing or access.topic(Op.DELETE, name)

    allowed_names, others = parted(request.topic_names, may_delete)
    denied = [
        DeletableTopicResult(each, error_code=TOPIC, error_message=MESSAGES[TOPIC])
        for each in others
    ]
    allowed = []
    for each in request.topics:
        name = names.get(each.topic_id) if each.name is None else each.name
        if name is None or may_delete(name):
            allowed.append(each)
            continue
        # The name behind an id is told only to those that may describe it.
        told = each.name or (name if access.topic(Op.DESCRIBE, name, logs=False) else None)
        denied.append(DeletableTopicResult(told, each.topic_id, TOPIC, MESSAGES[TOPIC]))
    if not denied:
        return handler(request, ctx)
    if not allowed and not allowed_names:
        return DeleteTopicsResponse(responses=denied)
    reply = handler(replace(request, topics=allowed, topic_names=allowed_names), ctx)
    return then(reply, lambda found: replace(found, responses=[*found.responses, *denied]))


list_offsets = each_item(
    "topics",
    topic_named(Op.DESCRIBE),
    lambda topic, _: ListOffsetsTopicResponse(
        topic.name,
        [ListOffsetsPartitionResponse(each.partition_index, TOPIC) for each in topic.partitions],
    ),
    "topics",
    ListOffsetsResponse,
)
delete_records = each_item(
    "topics",
    topic_named(Op.DELETE),
    lambda topic, _: DeleteRecordsTopicResult(
        topic.name,
        [
            DeleteRecordsPartitionResult(each.partition_index, -1, TOPIC)
            for each in topic.partitions
        ],
    ),
    "topics",
    DeleteRecordsResponse,
)
create_partitions = each_item(
    "topics",
    topic_named(Op.ALTER),
    lambda topic, _: CreatePartitionsTopicResult(topic.name, TOPIC, MESSAGES[TOPIC]),
    "results",
    CreatePartitionsResponse,
)
describe_producers = each_item(
    "topics",
    topic_named(Op.READ),
    lambda topic, _: TopicResponse(
        topic.name,
        [PartitionResponse(each, TOPIC, MESSAGES[TOPIC]) for each in topic.partition_indexes],
    ),
    "topics",
    DescribeProducersResponse,
)
_epoch_of_topics = each_item(
    "topics",
    lambda access, topic, _: access.topic(Op.DESCRIBE, topic.topic),
    lambda topic, _: OffsetForLeaderTopicResult(
        topic.topic, [EpochEndOffset(TOPIC, each.partition) for each in topic.partitions]
    ),
    "topics",
    OffsetForLeaderEpochResponse,
)


def offset_for_leader_epoch(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if access.cluster(Op.CLUSTER_ACTION, logs=False):
        return handler(request, ctx)
    return _epoch_of_topics(request, ctx, handler, access)
