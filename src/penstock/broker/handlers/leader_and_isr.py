"""LeaderAndIsr (key 4, v0-v7): the replicas that this broker has to lead or follow.

Between brokers only. Answered per partition: 11 for a leader epoch that is known already, 56 for a
replica in a failed directory. Refused: a stale controller epoch, a stale broker epoch.
Left out: versions below 5, whose requests have no topic ids, are refused as a whole.
"""

from penstock.broker.context import Context
from penstock.broker.translate.control_request_version import check_version
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)


async def leader_and_isr(request: LeaderAndIsrRequest, ctx: Context) -> LeaderAndIsrResponse:
    check_version(ctx, 5)
    answers = await ctx.services.control.control_plane.leader_and_isr(request, ctx.peer.connection)
    return LeaderAndIsrResponse(
        topics=[
            LeaderAndIsrTopicError(
                topic_id=topic_id,
                partition_errors=[
                    LeaderAndIsrPartitionError(partition_index=index, error_code=code)
                    for index, code in codes.items()
                ],
            )
            for topic_id, codes in answers.items()
        ]
    )
