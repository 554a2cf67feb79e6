"""InitProducerId (key 22, v0-v5): an id for an idempotent producer.

Refused: transactional ids, for which there is no coordinator; an id without its epoch.
"""

from penstock.broker.context import Context
from penstock.errors import ErrorCode
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NONE = -1


async def init_producer_id(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    if request.transactional_id == "" or (request.producer_id == NONE) != (
        request.producer_epoch == NONE
    ):
        return refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    # Whatever id such a producer had: a new one fences nobody and repeats nothing.
    return InitProducerIdResponse(producer_id=await ctx.services.producer_ids.take())


def refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NONE)
