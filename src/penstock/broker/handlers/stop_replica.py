"""StopReplica (key 5, v0-v4): stop replicas, and delete their logs if the controller says so.

Between brokers only. Refused: a stale controller epoch, a stale broker epoch; per partition a stale
leader epoch (74) and a failed directory (56).
Left out: versions below 3, whose requests have no leader epochs, are refused as a whole.
"""

from penstock.broker.context import Context
from penstock.broker.translate.control_request_version import check_version
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)


async def stop_replica(request: StopReplicaRequest, ctx: Context) -> StopReplicaResponse:
    check_version(ctx, 3)
    answers = await ctx.services.control.control_plane.stop_replica(request, ctx.peer.connection)
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=topic_partition.topic,
                partition_index=topic_partition.partition,
                error_code=code,
            )
            for topic_partition, code in answers.items()
        ]
    )
