"""FindCoordinator (key 10, v0-v6): the broker that coordinates each group, transactional id or
share-partition.

The internal topic is created when a coordinator of its kind is first requested.
Refused: unknown kinds of coordinators. Empty transactional ids are accepted, as in Kafka.
"""

from collections.abc import Coroutine, Mapping

from penstock.broker.context import Context
from penstock.broker.error_code import MALFORMED
from penstock.broker.translate.internal_topics import ensure_internal_topic
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.share.coordinator import TOPIC as SHARE_GROUP_STATE
from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TOPICS = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE, 2: SHARE_GROUP_STATE}
"""The internal topic of each key type."""


class InvalidKeyType(KafkaError):
    """No coordinator has keys of this type."""

    code = ErrorCode.INVALID_REQUEST


def find_coordinator(
    request: FindCoordinatorRequest, ctx: Context
) -> FindCoordinatorResponse | Coroutine[None, None, FindCoordinatorResponse]:
    topic = TOPICS.get(request.key_type)
    if topic is None:
        return respond(request, ctx, InvalidKeyType(MALFORMED))
    if topic in ctx.services.cluster.image.topics:
        return respond(request, ctx)
    return created(topic, request, ctx)


async def created(
    topic: str, request: FindCoordinatorRequest, ctx: Context
) -> FindCoordinatorResponse:
    try:
        await ensure_internal_topic(topic, ctx.services)
    except KafkaError as error:
        return respond(request, ctx, error)
    return respond(request, ctx)


def respond(
    request: FindCoordinatorRequest, ctx: Context, error: KafkaError | None = None
) -> FindCoordinatorResponse:
    def found(key: str) -> Coordinator:
        if error is not None:
            return nowhere(key, error.code, str(error))
        return coordinator(key, request.key_type, ctx)

    if ctx.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[found(key) for key in request.coordinator_keys]
        )
    one = found(request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or ErrorCode.NONE.name,  # as in Kafka
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def coordinator(key: str, key_type: int, ctx: Context) -> Coordinator:
    services, topic = ctx.services, TOPICS[key_type]
    image = services.cluster.image
    coordinators: Mapping[str, GroupCoordinator | TransactionCoordinator | ShareCoordinator] = {
        CONSUMER_OFFSETS: services.coordination.groups,
        TRANSACTION_STATE: services.coordination.transactions,
        SHARE_GROUP_STATE: services.share.coordinator,
    }
    index = coordinators[topic].partition_of(key)
    partition = image.partition(TopicPartition(topic, index))
    broker = image.brokers.get(partition.leader) if partition is not None else None
    endpoint = broker.endpoint(ctx.peer.listener) if broker is not None else None
    if broker is None or endpoint is None:
        message = f"{topic}-{index} has no leader"
        return nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    if broker.id == services.broker_id and not coordinators[topic].runtime.leads(index):
        # The image names a new topic's leaders before this broker has created their logs. The next
        # request would be refused with NOT_COORDINATOR, which some clients pass on to the user.
        message = f"{topic}-{index} is not ready yet"
        return nowhere(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    return Coordinator(
        key=key,
        node_id=broker.id,
        host=endpoint.host,
        port=endpoint.port,
    )


def nowhere(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
