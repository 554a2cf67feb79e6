"""Limits how many partitions clients create and delete (KIP-599), before the controller is called.

Versions that know this quota are strict: topics over the quota are refused one by one. Older
versions are served and throttled, and so are clients whose Metadata requests create topics. The
quota is charged at the broker that receives the request, since a forwarded one no longer names its
client; clients send such requests to the controller, so one broker counts them all.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Final, NamedTuple

import msgspec

from penstock.broker.context import AsyncHandler, Context
from penstock.broker.quotas.client_quotas import noted
from penstock.errors import ErrorCode
from penstock.types import NO_UUID
from penstock.wire.messages.create_partitions import (
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicResult
from penstock.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicState

CODE: Final = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class Mutation(NamedTuple):
    """How one API is counted."""

    strict_since: int
    requested: tuple[str, ...]
    """The request fields that list topics; each exists in some versions."""
    results: str
    partitions: Callable[[Any, Context], int]
    refused: Callable[[Any], Any]


def created(topic: CreatableTopic, ctx: Context) -> int:
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions > 0:
        return topic.num_partitions
    return ctx.services.config.controller.num_partitions


def added(topic: CreatePartitionsTopic, ctx: Context) -> int:
    known = ctx.services.cluster.image.topics.get(topic.name)
    return max(topic.count - len(known.partitions), 0) if known is not None else 0


def deleted(topic: DeleteTopicState | str, ctx: Context) -> int:
    image = ctx.services.cluster.image
    if isinstance(topic, str):
        known = image.topics.get(topic)
    elif topic.name is not None:
        known = image.topics.get(topic.name)
    else:
        known = image.topic_by_id(topic.topic_id)
    return len(known.partitions) if known is not None else 0


def deletion_refused(topic: DeleteTopicState | str) -> DeletableTopicResult:
    if isinstance(topic, str):
        return DeletableTopicResult(name=topic, error_code=CODE, error_message=None)
    return DeletableTopicResult(
        name=topic.name, topic_id=topic.topic_id, error_code=CODE, error_message=None
    )


CREATE_TOPICS = Mutation(
    6,
    ("topics",),
    "topics",
    created,
    lambda topic: CreatableTopicResult(topic.name, error_code=CODE, error_message=None),
)
CREATE_PARTITIONS = Mutation(
    3,
    ("topics",),
    "results",
    added,
    lambda topic: CreatePartitionsTopicResult(topic.name, error_code=CODE, error_message=None),
)
DELETE_TOPICS = Mutation(5, ("topics", "topic_names"), "responses", deleted, deletion_refused)


def limited(mutation: Mutation, handler: AsyncHandler[Any, Any]) -> AsyncHandler[Any, Any]:
    """The handler, limited to the topics that the client's quota allows."""

    @wraps(handler)
    def within_quota(request: Any, ctx: Context) -> Coroutine[Any, Any, Any]:
        quotas = ctx.services.quotas
        if not quotas.is_on or not quotas.mutation.is_on or ctx.services.is_broker(ctx.peer):
            return handler(request, ctx)
        return _charged(mutation, handler, request, ctx)

    return within_quota


async def _charged(
    mutation: Mutation, handler: AsyncHandler[Any, Any], request: Any, ctx: Context
) -> Any:
    quotas = ctx.services.quotas
    now_ms = quotas.monotonic_ms()
    meter = quotas.mutation.meter(ctx.peer.principal.name, ctx.header.client_id or "", now_ms)
    if meter is None:
        return await handler(request, ctx)
    bucket, bound = meter.bucket, meter.bound
    is_strict = ctx.version >= mutation.strict_since
    taken: dict[object, int] = {}
    refused = []
    kept: dict[str, list[Any]] = {}
    for field in mutation.requested:
        kept[field] = []
        for topic in getattr(request, field):
            if is_strict and bucket.tokens(bound, now_ms) < 0:
                refused.append(mutation.refused(topic))
                continue
            count = mutation.partitions(topic, ctx)
            bucket.take(count, bound, now_ms)
            taken[_key(topic)] = taken.get(_key(topic), 0) + count
            kept[field].append(topic)
    if not taken and refused:
        response: Any = ctx.header.api.response()
    else:
        response = await handler(msgspec.structs.replace(request, **kept), ctx)
    results: Sequence[Any] = getattr(response, mutation.results)
    back = sum(taken.get(_key(each), 0) for each in results if each.error_code)
    used = sum(taken.values()) - back
    now_ms = quotas.monotonic_ms()
    bucket.take(-back, bound, now_ms)
    meter.rate.record(used, now_ms)
    delay_ms = bucket.throttle_ms(bound, now_ms) if refused or (used and not is_strict) else 0
    if delay_ms:
        meter.delayed(delay_ms, now_ms)
    return msgspec.structs.replace(
        response,
        throttle_time_ms=max(delay_ms, response.throttle_time_ms),
        **{mutation.results: [*results, *refused]},
    )


def charged_ms(partitions: int, ctx: Context) -> int:
    """Charge partitions that a request created implicitly; returns the client's throttle time."""
    quotas = ctx.services.quotas
    if not quotas.is_on or not quotas.mutation.is_on or ctx.services.is_broker(ctx.peer):
        return 0
    now_ms = quotas.monotonic_ms()
    meter = quotas.mutation.meter(ctx.peer.principal.name, ctx.header.client_id or "", now_ms)
    if meter is None or not partitions:
        return 0
    meter.bucket.take(partitions, meter.bound, now_ms)
    meter.rate.record(partitions, now_ms)
    return noted(meter, meter.bucket.throttle_ms(meter.bound, now_ms), now_ms)


def _key(topic: Any) -> object:
    """A topic's name, or its id if the request names it by id."""
    if isinstance(topic, str):
        return topic
    topic_id = getattr(topic, "topic_id", NO_UUID)
    return topic.name if topic.name is not None else topic_id
