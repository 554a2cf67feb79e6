"""Produce (key 0, v3-v13): append each batch to the log of its partition's leader.

Refused: internal topics; acks other than -1, 0, 1; batches that `record.validate` refuses; batches
outside of their producer's transaction (from v12 on a first write adds its partition to it). With
acks=0 an error closes the connection, since there is no response. Errors name the invalid records
(v8) and the current leader (v10).
"""

from collections.abc import Coroutine
from typing import TypeAlias

from penstock.broker.context import Context, Reply
from penstock.broker.produce.appending import Appending, TurnOverError
from penstock.broker.produce.pending import parked, with_leaders
from penstock.broker.produce.turns import append_rest, copied, verification_of, verified
from penstock.broker.transaction.produce_verification import ProduceVerification
from penstock.errors import ProtocolError
from penstock.wire.messages.produce import ProduceRequest, ProduceResponse

ProduceReply: TypeAlias = Reply[ProduceResponse]


def produce(
    request: ProduceRequest, ctx: Context
) -> ProduceReply | Coroutine[None, None, ProduceReply]:
    verification = None
    if request.transactional_id is not None:
        verification = verification_of(request, ctx)
        if verification.is_pending:
            return append_verified(copied(request), ctx, verification)
    return append(request, ctx, verification)


async def append_verified(
    request: ProduceRequest, ctx: Context, verification: ProduceVerification
) -> ProduceReply:
    try:
        reply = append(request, await verified(ctx, verification), verification, is_copied=True)
        return await reply if isinstance(reply, Coroutine) else reply
    finally:
        verification.close()


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
    response = await append_rest(request, ctx, appending)
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
