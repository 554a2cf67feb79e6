"""InitProducerId (key 22, v0-v5): an id and an epoch for an idempotent or transactional producer.

A transactional id keeps its producer id; the new epoch fences the former producer. An open
transaction is aborted, and the producer retries meanwhile.
Refused: an id without its epoch; timeouts beyond `transaction.max.timeout.ms`. Left out: two-phase
commit (v6, KIP-939). It is not stable in Kafka either, and no client can use it: the producer of
4.4.0 takes `transaction.two.phase.commit.enable` but cannot prepare a transaction. With Kafka
4.3.1, even if the broker enables it, its transactions are ordinary ones, as here.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.broker.translate.producers import WAIT_MS, code_for_version
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.initiation import TransactionInit
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1


async def init_producer_id(
    request: InitProducerIdRequest, ctx: Context
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    if request.transactional_id == "" or (request.producer_id == NONE) != (
        request.producer_epoch == NONE
    ):
        return refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await transactional(request.transactional_id, request, ctx)
    # Whatever id the producer had: a new one fences no producer and repeats no sequence.
    return InitProducerIdResponse(producer_id=await ctx.services.coordination.producer_ids.take())


async def transactional(
    name: str, request: InitProducerIdRequest, ctx: Context
) -> InitProducerIdResponse | Parked[InitProducerIdResponse]:
    services, known = ctx.services, None
    if request.producer_id != NONE:
        known = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    requested, new_id = TransactionInit(request.transaction_timeout_ms, known), NONE
    try:
        if services.coordination.transactions.needs_producer_id(name, requested):
            new_id = await services.coordination.producer_ids.take()
    except KafkaError as error:
        return refused(error.code)
    pending = services.coordination.transactions.init(name, requested, new_id)

    def respond(replies: list[ProducerIdAndEpoch | KafkaError]) -> InitProducerIdResponse:
        (reply,) = replies
        if isinstance(reply, KafkaError):
            return refused(known_code(reply, ctx))
        return InitProducerIdResponse(producer_id=reply.id, producer_epoch=reply.epoch)

    return answered([pending], respond, ctx, WAIT_MS, services.coordination.transactions.runtime)


def known_code(error: KafkaError, ctx: Context) -> ErrorCode:
    return code_for_version(error.code, since=4, version=ctx.version)


def refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NONE)
