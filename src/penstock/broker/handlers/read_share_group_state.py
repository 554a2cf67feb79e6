"""ReadShareGroupState (key 84, v0): the state of a share-partition, for its new leader.

Fences writes of former leaders. Refused: an older leader epoch, state that was never initialized.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.share_state import each_partition
from penstock.wire.messages import read_share_group_state as reading


def read_share_group_state(
    request: reading.ReadShareGroupStateRequest, ctx: Context
) -> reading.ReadShareGroupStateResponse | Parked[reading.ReadShareGroupStateResponse]:
    return each_partition(
        request,
        ctx,
        lambda shares, key, part: shares.read(key, part.leader_epoch),
        lambda part, state: reading.PartitionResult(
            partition=part.partition,
            state_epoch=state.state_epoch,
            start_offset=state.start_offset,
            state_batches=[reading.StateBatch(*each) for each in state.batches],
        ),
        (reading.PartitionResult, reading.ReadStateResult),
        reading.ReadShareGroupStateResponse,
    )
