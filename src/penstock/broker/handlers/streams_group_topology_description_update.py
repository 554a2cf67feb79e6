"""StreamsGroupTopologyDescriptionUpdate (key 93, v0): a member describes its topology (KIP-1331).

The coordinator holds the description in memory; Kafka 4.4 needs a plugin for that. A new
coordinator requests it from a member with the next heartbeat. Refused: senders that are not
members, another topology epoch, nodes of unknown types.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.broker.translate.streams_groups import not_served
from penstock.coordinator.group.consumer.errors import InvalidHeartbeat
from penstock.coordinator.result import EmptyReply
from penstock.errors import KafkaError
from penstock.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


def streams_group_topology_description_update(
    request: StreamsGroupTopologyDescriptionUpdateRequest, ctx: Context
) -> (
    StreamsGroupTopologyDescriptionUpdateResponse
    | Parked[StreamsGroupTopologyDescriptionUpdateResponse]
):
    refused: KafkaError | None = not_served(ctx)
    if refused is None and not (request.group_id and request.member_id):
        refused = InvalidHeartbeat("GroupId and MemberId can't be empty.")
    if refused is not None:
        return respond(refused)
    pending = ctx.services.coordination.groups.describe_topology(
        request.group_id, request.member_id, request.topology_epoch, request.topology_description
    )
    return answered([pending], lambda replies: respond(replies[0]), ctx)


def respond(reply: EmptyReply | KafkaError) -> StreamsGroupTopologyDescriptionUpdateResponse:
    if isinstance(reply, KafkaError):
        return StreamsGroupTopologyDescriptionUpdateResponse(
            error_code=reply.code, error_message=str(reply)
        )
    return StreamsGroupTopologyDescriptionUpdateResponse()
