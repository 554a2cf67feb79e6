"""UpdateMetadata (key 6, v0-v8): live brokers and partition leaders, from the controller.

Between brokers only. Refused: a stale controller epoch, a stale broker epoch.
Left out: versions below 7, whose requests have no topic ids, are refused as a whole.
"""

from penstock.broker.context import Context
from penstock.broker.translate.control_request_version import check_version
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


async def update_metadata(request: UpdateMetadataRequest, ctx: Context) -> UpdateMetadataResponse:
    check_version(ctx, 7)
    await ctx.services.control.control_plane.update_metadata(request, ctx.peer.connection)
    return UpdateMetadataResponse()
