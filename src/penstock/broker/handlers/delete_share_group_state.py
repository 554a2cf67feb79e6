"""DeleteShareGroupState (key 86, v0): delete the state of share-partitions."""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.share_state import each_partition
from penstock.wire.messages import delete_share_group_state as deleting


def delete_share_group_state(
    request: deleting.DeleteShareGroupStateRequest, ctx: Context
) -> deleting.DeleteShareGroupStateResponse | Parked[deleting.DeleteShareGroupStateResponse]:
    return each_partition(
        request,
        ctx,
        lambda shares, key, _: shares.delete(key),
        lambda part, _: deleting.PartitionResult(part.partition),
        (deleting.PartitionResult, deleting.DeleteStateResult),
        deleting.DeleteShareGroupStateResponse,
    )
