"""InitializeShareGroupState (key 83, v0): initialize or reset the state of share-partitions.

Refused: an older state epoch.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.share_state import each_partition
from penstock.wire.messages import initialize_share_group_state as initializing


def initialize_share_group_state(
    request: initializing.InitializeShareGroupStateRequest, ctx: Context
) -> (
    initializing.InitializeShareGroupStateResponse
    | Parked[initializing.InitializeShareGroupStateResponse]
):
    return each_partition(
        request,
        ctx,
        lambda shares, key, part: shares.initialize(key, part.state_epoch, part.start_offset),
        lambda part, _: initializing.PartitionResult(part.partition),
        (initializing.PartitionResult, initializing.InitializeStateResult),
        initializing.InitializeShareGroupStateResponse,
    )
