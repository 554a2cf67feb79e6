"""EndTxn (key 26, v0-v5): a producer commits or aborts its transaction.

Answered when the decision is committed; the markers follow. From v5 on the response has the epoch
of the next transaction (KIP-890).
"""

from collections.abc import Coroutine

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.broker.translate.producers import WAIT_MS, code_for_version
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.ending import TransactionEnd
from penstock.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION
from penstock.errors import KafkaError
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

NONE = -1

Answer = EndTxnResponse | Parked[EndTxnResponse]


def end_txn(request: EndTxnRequest, ctx: Context) -> Answer | Coroutine[None, None, Answer]:
    requested = TransactionEnd(
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        request.committed,
        EPOCH_BUMP_VERSION if ctx.version >= 5 else 0,
    )
    if ctx.services.coordination.transactions.needs_producer_id(
        request.transactional_id, requested
    ):
        return with_new_id(request.transactional_id, requested, ctx)
    return end(request.transactional_id, requested, NONE, ctx)


async def with_new_id(name: str, requested: TransactionEnd, ctx: Context) -> Answer:
    return end(name, requested, await ctx.services.coordination.producer_ids.take(), ctx)


def end(name: str, requested: TransactionEnd, new_id: int, ctx: Context) -> Answer:
    pending = ctx.services.coordination.transactions.end(name, requested, new_id)

    def respond(replies: list[ProducerIdAndEpoch | KafkaError]) -> EndTxnResponse:
        (reply,) = replies
        if isinstance(reply, KafkaError):
            return EndTxnResponse(
                error_code=code_for_version(reply.code, since=2, version=ctx.version)
            )
        return EndTxnResponse(producer_id=reply.id, producer_epoch=reply.epoch)

    return answered(
        [pending], respond, ctx, WAIT_MS, ctx.services.coordination.transactions.runtime
    )
