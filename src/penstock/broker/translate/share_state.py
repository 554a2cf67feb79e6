"""Requests about the state of share-partitions: each partition has its own reply."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.result import PendingReply
from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.share.state import SharePartitionKey
from penstock.errors import KafkaError

R = TypeVar("R")


def each_partition(
    request: Any,
    ctx: Context,
    ask: Callable[[ShareCoordinator, SharePartitionKey, Any], PendingReply[Any]],
    result: Callable[[Any, Any], Any],
    messages: tuple[Any, Any],
    response: Callable[[list[Any]], R],
) -> R | Parked[R]:
    shares = ctx.services.share.coordinator
    refused, of_topic = messages
    if not request.group_id:  # as in Kafka: the response is empty
        return response([])
    asked = [(topic, part) for topic in request.topics for part in topic.partitions]
    pending_replies = [
        ask(shares, SharePartitionKey(request.group_id, topic.topic_id, part.partition), part)
        for topic, part in asked
    ]

    def respond(replies: Sequence[Any]) -> R:
        topics: dict[bytes, list[Any]] = {}
        for (topic, part), reply in zip(asked, replies, strict=True):
            found = (
                refused(partition=part.partition, error_code=reply.code, error_message=str(reply))
                if isinstance(reply, KafkaError)
                else result(part, reply)
            )
            topics.setdefault(topic.topic_id, []).append(found)
        return response([of_topic(*each) for each in topics.items()])

    wait_ms = ctx.services.config.share.share_coordinator_write_timeout_ms
    return answered(pending_replies, respond, ctx, wait_ms, shares.runtime)
