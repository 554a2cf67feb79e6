"""UpdateMetadata (key 6, v0-v8): the controller says who lives, and who leads what.

Between brokers only. Refused: an outrun controller, an earlier life of this broker.
Left out: versions below 7, whose requests name no topic ids, are refused as a whole.
"""

from penstock.broker.context import Context
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


class TooOldForIds(KafkaError):
    """Without the topic's id it could not be told from one made anew."""

    code = ErrorCode.UNSUPPORTED_VERSION


async def update_metadata(request: UpdateMetadataRequest, ctx: Context) -> UpdateMetadataResponse:
    if ctx.version < 7:
        raise TooOldForIds(f"UpdateMetadata v{ctx.version} names no topic ids")
    await ctx.services.orders.update_metadata(request)
    return UpdateMetadataResponse()
