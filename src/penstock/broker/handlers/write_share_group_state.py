"""WriteShareGroupState (key 85, v0-v1): changes of a share-partition's state, by its leader.

Refused: an older leader epoch or state epoch, state that was never initialized.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.share_state import each_partition
from penstock.coordinator.share.shard import StateUpdate
from penstock.coordinator.share.state import StateBatch
from penstock.wire.messages import write_share_group_state as writing


def write_share_group_state(
    request: writing.WriteShareGroupStateRequest, ctx: Context
) -> writing.WriteShareGroupStateResponse | Parked[writing.WriteShareGroupStateResponse]:
    return each_partition(
        request,
        ctx,
        lambda shares, key, part: shares.write(key, update_of(part)),
        lambda part, _: writing.PartitionResult(part.partition),
        (writing.PartitionResult, writing.WriteStateResult),
        writing.WriteShareGroupStateResponse,
    )


def update_of(part: writing.PartitionData) -> StateUpdate:
    batches = tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in part.state_batches
    )
    return StateUpdate(
        part.state_epoch,
        part.leader_epoch,
        part.start_offset,
        part.delivery_complete_count,
        batches,
    )
