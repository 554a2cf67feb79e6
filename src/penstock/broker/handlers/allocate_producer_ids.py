"""AllocateProducerIds (key 67, v0): a block of producer ids for a broker to allocate.

Between brokers only, and only the controller answers. Refused: if this broker is not the controller
(41), a stale broker epoch (77).
"""

from penstock.broker.context import Context
from penstock.types import BrokerId
from penstock.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


async def allocate_producer_ids(
    request: AllocateProducerIdsRequest, ctx: Context
) -> AllocateProducerIdsResponse:
    block = await ctx.services.control.controller.next_producer_id_block(
        BrokerId(request.broker_id), request.broker_epoch
    )
    return AllocateProducerIdsResponse(
        producer_id_start=block.start, producer_id_len=block.end - block.start
    )
