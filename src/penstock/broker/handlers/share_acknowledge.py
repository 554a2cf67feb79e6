"""ShareAcknowledge (key 79, v1-v2): a member accepts, releases, rejects or renews its records.

Answered once the share coordinator has written the decisions. A session's last request (epoch -1)
releases all records that the member still holds.
"""

from collections.abc import Coroutine

from penstock.broker.context import Context
from penstock.broker.share.errors import InvalidShareSessionEpoch
from penstock.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from penstock.broker.translate.share_requests import (
    Acknowledged,
    ShareRequest,
    error_of,
    is_written,
    not_served,
    partition_count,
    session_key,
    until_written,
)
from penstock.errors import KafkaError
from penstock.types import TopicIdPartition, Uuid
from penstock.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


def share_acknowledge(
    request: ShareAcknowledgeRequest, ctx: Context
) -> ShareAcknowledgeResponse | Coroutine[None, None, ShareAcknowledgeResponse]:
    refused = not_served(ctx)
    if refused is not None:
        return ShareAcknowledgeResponse(error_code=refused.code, error_message=str(refused))
    try:
        by = ShareRequest(session_key(request), ctx)
        shares = ctx.services.share.partitions
        by.check_count(partition_count(request.topics))
        if request.share_session_epoch == INITIAL_EPOCH:
            raise InvalidShareSessionEpoch("The share session epoch is invalid.")
        shares.sessions.get(by.key, request.share_session_epoch)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, error_message=str(error))
    given = {
        TopicIdPartition(topic.topic_id, part.partition_index): part.acknowledgement_batches
        for topic in request.topics
        for part in topic.partitions
    }
    acknowledged = by.acknowledge(given.items(), is_renewal=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        shares.end_session(by.key)
    if is_written(acknowledged):
        return respond(acknowledged, by)
    return after_writing(acknowledged, by)


async def after_writing(acknowledged: Acknowledged, by: ShareRequest) -> ShareAcknowledgeResponse:
    await until_written(acknowledged, by.ctx)
    return respond(acknowledged, by)


def respond(acknowledged: Acknowledged, by: ShareRequest) -> ShareAcknowledgeResponse:
    topics: dict[Uuid, list[PartitionData]] = {}
    leaders: set[int] = set()
    for each, outcome in acknowledged.items():
        code, message = error_of(outcome)
        leader = by.leader(each, outcome if isinstance(outcome, Exception) else None)
        leaders |= set() if leader is None else {leader[0]}
        topics.setdefault(each.topic_id, []).append(
            PartitionData(each.partition, code, message, LeaderIdAndEpoch(*leader or ()))
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=by.config.share_record_lock_duration_ms,
        responses=[ShareAcknowledgeTopicResponse(*each) for each in topics.items()],
        node_endpoints=by.endpoints(leaders, NodeEndpoint),
    )
