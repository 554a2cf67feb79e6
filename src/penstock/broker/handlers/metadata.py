"""Metadata (key 3, v0-v13): brokers, the controller, topics and the leaders of their partitions.

Topics that are requested by name are created if the request and the broker allow it. A topic's part
of the response is encoded once for each version, and cached until the topic changes.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Final

import msgspec

from penstock.broker.context import Context
from penstock.broker.handling.mutation_quota import charged_ms
from penstock.broker.translate.brokers import reachable
from penstock.broker.translate.internal_topics import new_topic
from penstock.broker.translate.operations import NOT_ASKED, cluster_operations, topic_operations
from penstock.controller.topic_rules import InvalidTopic, check_name
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import PartitionRegistration, Topic
from penstock.metadata.topic_names import INTERNAL_TOPICS
from penstock.types import NO_UUID, Uuid
from penstock.wire.codec import encode_struct
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

MANY_TOPICS: Final = 2_000
TOPICS_A_TURN: Final = 500
"""Topics per turn, for a request of more than `MANY_TOPICS`: a few milliseconds."""


def metadata(
    request: MetadataRequest, ctx: Context
) -> MetadataResponse | Coroutine[None, None, MetadataResponse]:
    if ctx.version in {10, 11} and any(is_by_id(each) for each in request.topics or ()):
        return by_id_too_early(request)
    missing = to_create(request, ctx)
    if missing:
        return created(missing, request, ctx)
    if request.topics is not None and len(request.topics) > MANY_TOPICS:
        return response_in_turns(request, ctx, {})
    return response(request, ctx, {})


def is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.topic_id != NO_UUID or topic.name is None


def by_id_too_early(request: MetadataRequest) -> MetadataResponse:
    """Versions 10 and 11 have the field for ids, but only 12 accepts them."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=each.name or "", topic_id=each.topic_id
            )
            for each in request.topics or ()
        ]
    )


def to_create(request: MetadataRequest, ctx: Context) -> list[str]:
    services = ctx.services
    allowed = (
        request.allow_auto_topic_creation and services.config.controller.auto_create_topics_enable
    )
    if not allowed or not request.topics:
        return []
    known = services.cluster.image.topics
    named = [each.name for each in request.topics if each.name and each.topic_id == NO_UUID]
    return [name for name in dict.fromkeys(named) if name not in known]


async def created(names: list[str], request: MetadataRequest, ctx: Context) -> MetadataResponse:
    """Respond after creating topics; a topic that could not be created has its error."""
    news = [new_topic(name, ctx.services) for name in names]
    refused = await ctx.services.control.link.create_topics(news)
    errors = {n: each for n, each in zip(names, refused, strict=True) if each is not None}
    usual = ctx.services.config.controller.num_partitions
    made = [new for new, error in zip(news, refused, strict=True) if error is None]
    partitions = sum(new.num_partitions if new.num_partitions > 0 else usual for new in made)
    delay_ms = charged_ms(partitions, ctx)
    answer = await response_in_turns(request, ctx, errors)
    return msgspec.structs.replace(answer, throttle_time_ms=delay_ms)


def response(
    request: MetadataRequest, ctx: Context, errors: dict[str, KafkaError]
) -> MetadataResponse:
    tells = request.include_topic_authorized_operations
    if request.topics is None or (ctx.version == 0 and not request.topics):
        topics = [
            known(topic, ctx, tells_operations=tells)
            for topic in ctx.services.cluster.image.topics.values()
        ]
    else:
        topics = [
            requested(each, ctx, errors, tells_operations=tells)
            for each in named_topics(request.topics)
            if each is not None
        ]
    return response_of(topics, request, ctx)


async def response_in_turns(
    request: MetadataRequest, ctx: Context, errors: dict[str, KafkaError]
) -> MetadataResponse:
    """Like `response`, in turns, as the request may name very many topics."""
    tells = request.include_topic_authorized_operations
    topics = []
    for count, each in enumerate(named_topics(request.topics or []), 1):
        if each is not None:
            topics.append(requested(each, ctx, errors, tells_operations=tells))
        if count % TOPICS_A_TURN == 0:
            await asyncio.sleep(0)
    return response_of(topics, request, ctx)


def named_topics(topics: list[MetadataRequestTopic]) -> Iterator[MetadataRequestTopic | None]:
    """Each topic once; None for a repeated one, so that many repetitions take turns too.

    As in Kafka, if a request names any topic by id, those without an id are ignored.
    """
    by_id = False
    for each in topics:
        if each.topic_id != NO_UUID:
            by_id = True
            break
    named: set[str | Uuid | None] = set()
    for each in topics:
        key = each.topic_id if by_id else each.name  # with an id, the name is ignored
        if (by_id and each.topic_id == NO_UUID) or key in named:
            yield None
        else:
            named.add(key)
            yield each


def response_of(
    topics: list[MetadataResponseTopic], request: MetadataRequest, ctx: Context
) -> MetadataResponse:
    image = ctx.services.cluster.image
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=at.host, port=at.port, rack=each.rack)
            for each, at in reachable(image, ctx.peer.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller,
        topics=topics,
        cluster_authorized_operations=(
            cluster_operations(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def requested(
    topic: MetadataRequestTopic,
    ctx: Context,
    errors: dict[str, KafkaError],
    *,
    tells_operations: bool,
) -> MetadataResponseTopic:
    image = ctx.services.cluster.image
    if topic.topic_id != NO_UUID:
        found = image.topic_by_id(topic.topic_id)
        if found is None:
            return MetadataResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID,
                name=None if ctx.version >= 12 else "",
                topic_id=topic.topic_id,
            )
        return known(found, ctx, tells_operations=tells_operations)
    name = topic.name or ""
    if name in image.topics:
        return known(image.topics[name], ctx, tells_operations=tells_operations)
    code = refusal(name, errors)
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS)


def refusal(name: str, errors: dict[str, KafkaError]) -> ErrorCode:
    """The error for a topic that does not exist, or that this broker does not know yet.

    As in Kafka, if the controller already has it, the error makes the client retry.
    """
    if name in errors:
        code = errors[name].code
        exists = code == ErrorCode.TOPIC_ALREADY_EXISTS
        return ErrorCode.LEADER_NOT_AVAILABLE if exists else code
    try:
        check_name(name)
    except InvalidTopic as error:
        return error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def known(topic: Topic, ctx: Context, *, tells_operations: bool) -> MetadataResponseTopic:
    """The topic's encoded part of the response, cached until the topic changes."""
    cache = ctx.services.encoded_topics
    operations = topic_operations(ctx, topic.name) if tells_operations else NOT_ASKED
    key = (topic.name, ctx.version, operations)
    found = cache.get(key)
    if found is not None and found[0] is topic:
        return found[1]
    message = MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            partition(index, each, ctx.version) for index, each in sorted(topic.partitions.items())
        ],
        topic_authorized_operations=operations,
    )
    encoded = encode_struct(message, ctx.version, MetadataResponse)
    if len(cache) > 2 * len(ctx.services.cluster.image.topics) + 1000:
        cache.clear()  # drops deleted topics, and versions no longer in use
    cache[key] = (topic, encoded)
    return encoded


def partition(index: int, state: PartitionRegistration, version: int) -> MetadataResponsePartition:
    code = ErrorCode.NONE if state.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
    replicas: list[int] = [*state.replicas]
    isr: list[int] = [*state.isr]
    if version == 0 and state.offline_replicas:
        # Clients of version 0 connect to every replica in the response, so these must be alive.
        replicas = [each for each in replicas if each not in state.offline_replicas]
        isr = [each for each in isr if each not in state.offline_replicas]
        code = code or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=list(state.offline_replicas),
    )
