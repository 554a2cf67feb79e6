"""ReadShareGroupStateSummary (key 87, v0-v1): the start offsets of share-partitions.

A share-partition without state has -1.
"""

from typing import Any

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.share.state_calls import NOTHING_KNOWN
from penstock.broker.translate.share_state import each_partition
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.share.state import ShareGroupOffset
from penstock.wire.messages import read_share_group_state_summary as summarizing


def read_share_group_state_summary(
    request: summarizing.ReadShareGroupStateSummaryRequest, ctx: Context
) -> (
    summarizing.ReadShareGroupStateSummaryResponse
    | Parked[summarizing.ReadShareGroupStateSummaryResponse]
):
    return each_partition(
        request,
        ctx,
        lambda shares, key, _: shares.summary(key),
        summarized,
        (summarizing.PartitionResult, summarizing.ReadStateSummaryResult),
        summarizing.ReadShareGroupStateSummaryResponse,
    )


def summarized(part: Any, reply: ShareGroupOffset | EmptyReply) -> summarizing.PartitionResult:
    state = NOTHING_KNOWN if isinstance(reply, EmptyReply) else reply
    return summarizing.PartitionResult(
        partition=part.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )
