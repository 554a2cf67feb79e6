"""ControlledShutdown (key 7, v0-v3): a broker that is about to stop gives up its leaderships.

Between brokers only, and only the controller answers. Partitions without another in-sync replica
remain. Refused: if this broker is not the controller (11), a stale broker epoch (77).
"""

from penstock.broker.context import Context
from penstock.controller.epoch import NotController
from penstock.errors import ErrorCode
from penstock.types import BrokerId
from penstock.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


async def controlled_shutdown(
    request: ControlledShutdownRequest, ctx: Context
) -> ControlledShutdownResponse:
    controller = ctx.services.control.controller
    try:
        left = await controller.shut_down(BrokerId(request.broker_id), request.broker_epoch)
    except NotController:
        return ControlledShutdownResponse(error_code=ErrorCode.STALE_CONTROLLER_EPOCH)
    return ControlledShutdownResponse(
        remaining_partitions=[
            RemainingPartition(topic_name=each.topic, partition_index=each.partition)
            for each in left
        ]
    )
