"""Produce (key 0, v3-v13): append each batch to the log of its partition's leader.

Refused: internal topics; acks other than -1, 0, 1; batches that `record.validate` refuses; batches
outside of their producer's transaction (from v12 on a first write adds its partition to it). With
acks=0 an error closes the connection, since there is no response. Errors name the invalid records
(v8) and the current leader (v10).
"""

from collections.abc import Coroutine
from typing import TypeAlias

import msgspec

from penstock.broker.context import Context, Reply
from penstock.broker.produce.appending import Appending, TurnOverError
from penstock.broker.produce.pending import parked, with_leaders
from penstock.broker.transaction.produce_verification import ProduceVerification
from penstock.errors import ProtocolError
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
)

ProduceReply: TypeAlias = Reply[ProduceResponse]


def produce(
    request: ProduceRequest, ctx: Context
) -> ProduceReply | Coroutine[None, None, ProduceReply]:
    verification = verification_of(request, ctx)
    if verification is not None and verification.is_pending:
        return append_verified(copied(request), ctx, verification)
    return append(request, ctx, verification)


def verification_of(request: ProduceRequest, ctx: Context) -> ProduceVerification | None:
    """The verifications; None without a transactional id."""
    if request.transactional_id is None:
        return None
    services = ctx.services
    return ProduceVerification(
        request,
        ctx.version,
        services.coordination.verifier,
        services.cluster,
        services.replicas.partitions,
    )


async def append_verified(
    request: ProduceRequest, ctx: Context, verification: ProduceVerification
) -> ProduceReply:
    """Append after the transaction coordinator has answered: it is on another broker, or its record
    is not committed yet.
    """
    try:
        await verification.wait()
        now_ms = ctx.services.resources.clock.now_ms()
        ctx = msgspec.structs.replace(ctx, now_ms=now_ms)
        reply = append(request, ctx, verification, is_copied=True)
        return await reply if isinstance(reply, Coroutine) else reply
    finally:
        verification.close()


def copied(request: ProduceRequest) -> ProduceRequest:
    """A copy for a request that waits: its records are views of a buffer that is reused."""
    replace = msgspec.structs.replace

    def with_own_records(part: PartitionProduceData) -> PartitionProduceData:
        data = part.records
        if not isinstance(data, memoryview):
            return part
        return replace(part, records=memoryview(bytearray(data)))

    return replace(
        request,
        topic_data=[
            replace(topic, partition_data=[with_own_records(each) for each in topic.partition_data])
            for topic in request.topic_data
        ],
    )


def append(
    request: ProduceRequest,
    ctx: Context,
    verification: ProduceVerification | None,
    *,
    is_copied: bool = False,
) -> ProduceReply | Coroutine[None, None, ProduceReply]:
    appending = Appending(request, ctx, verification, is_copied=is_copied)
    try:
        response = appending.response(request)
    except TurnOverError:
        return append_in_turns(request if is_copied else copied(request), ctx, appending)
    return reply_to(request, ctx, appending, response)


async def append_in_turns(
    request: ProduceRequest, ctx: Context, appending: Appending
) -> ProduceReply:
    """Append with other requests in between. They may end the transaction, so each turn verifies
    it.
    """
    appending.is_copied = True
    response = None
    while response is None:
        await appending.pause()
        appending.verification = verification = verification_of(request, ctx)
        try:
            if verification is not None:
                await verification.wait()
            response = appending.response(request)
        except TurnOverError:
            response = None
        finally:
            if verification is not None:
                verification.close()
    return reply_to(request, ctx, appending, response)


def reply_to(
    request: ProduceRequest, ctx: Context, appending: Appending, response: ProduceResponse
) -> ProduceReply:
    if request.acks == 0:
        if appending.refused:
            raise ProtocolError(f"acks=0 cannot be answered: {appending.refused}")
        return None
    if appending.is_led_elsewhere:
        response = with_leaders(response, ctx)
    if not appending.has_paused:
        if all(each.is_done(request.acks) for each in appending.pending):
            return response
        return parked(request, response, appending.pending, ctx)
    # This broker may have lost leadership since the first turn, and with it the earlier appends.
    waiting = parked(request, response, appending.pending, ctx)
    return waiting.attempt() or waiting
