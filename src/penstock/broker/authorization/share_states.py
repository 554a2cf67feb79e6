"""Refusals of requests to the share coordinator, by partition as in Kafka."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from penstock.broker.authorization.guard import CLUSTER, MESSAGES
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.wire.messages import delete_share_group_state as deleting
from penstock.wire.messages import initialize_share_group_state as initializing
from penstock.wire.messages import read_share_group_state as reading
from penstock.wire.messages import read_share_group_state_summary as summing_up
from penstock.wire.messages import write_share_group_state as writing


def _refused(
    partition: Callable[..., Any], topic: Callable[..., Any], response: Callable[..., Any]
) -> Callable[[Any], Any]:
    refusal = Refusal(
        lambda each, parts: topic(each.topic_id, parts),
        attrgetter("partitions"),
        lambda _, part: partition(part.partition, CLUSTER, MESSAGES[CLUSTER]),
    )
    return lambda request: when_refused(request.topics, refusal, response)


initializing_refused = _refused(
    initializing.PartitionResult,
    initializing.InitializeStateResult,
    initializing.InitializeShareGroupStateResponse,
)
reading_refused = _refused(
    reading.PartitionResult, reading.ReadStateResult, reading.ReadShareGroupStateResponse
)
writing_refused = _refused(
    writing.PartitionResult, writing.WriteStateResult, writing.WriteShareGroupStateResponse
)
deleting_refused = _refused(
    deleting.PartitionResult, deleting.DeleteStateResult, deleting.DeleteShareGroupStateResponse
)
summary_refused = _refused(
    summing_up.PartitionResult,
    summing_up.ReadStateSummaryResult,
    summing_up.ReadShareGroupStateSummaryResponse,
)
