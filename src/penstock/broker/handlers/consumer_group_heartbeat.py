"""ConsumerGroupHeartbeat (key 68, v0-v1): join, stay, get partitions, leave (KIP-848).

Refused: members of another epoch; instance ids in use; unknown assignors, invalid expressions.
Regular expressions (v1) need the package google-re2. A classic group of consumers is converted to
this protocol if `group.consumer.migration.policy` allows it; otherwise the group is not found.
"""

from collections.abc import Callable

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.consumer_protocol import not_served
from penstock.broker.translate.pending_replies import answered
from penstock.coordinator.group.consumer.errors import InvalidHeartbeat
from penstock.coordinator.group.consumer.heartbeat import (
    JOIN_EPOCH,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
)
from penstock.coordinator.group.consumer.records import assignment_of, by_topic
from penstock.errors import KafkaError
from penstock.security.acl import AclOperation
from penstock.types import TopicIdPartition, Uuid, random_uuid, uuid_text
from penstock.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, ctx: Context
) -> ConsumerGroupHeartbeatResponse | Parked[ConsumerGroupHeartbeatResponse]:
    refused = not_served(ctx)
    if refused is not None:
        return respond(refused)
    if not request.group_id:
        return respond(InvalidHeartbeat("GroupId can't be empty."))
    pending = ctx.services.coordination.groups.consumer_heartbeat(
        request.group_id, requested(request, ctx)
    )
    return answered([pending], lambda replies: respond(*replies), ctx)


def requested(request: ConsumerGroupHeartbeatRequest, ctx: Context) -> ConsumerHeartbeat:
    owned, names = request.topic_partitions, request.subscribed_topic_names
    return ConsumerHeartbeat(
        member_id=request.member_id or new_member_id(request, ctx),
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        client_id=ctx.header.client_id or "",
        client_host=f"/{ctx.peer.host}",
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else assignment_of(owned),
        may_see=may_see(ctx),
    )


def may_see(ctx: Context) -> Callable[[str], bool] | None:
    """Returns whether the member may describe a topic; others do not match its expression."""
    authorizer = ctx.services.authorizer
    if authorizer is None:
        return None
    access = authorizer.access(ctx.peer, ctx.header.api.name)
    return lambda topic: access.topic(AclOperation.DESCRIBE, topic, logs=False)


def new_member_id(request: ConsumerGroupHeartbeatRequest, ctx: Context) -> str:
    """From v1 on members choose their own ids."""
    is_given = ctx.version == 0 and request.member_epoch == JOIN_EPOCH
    return uuid_text(Uuid(random_uuid(ctx.services.resources.chance).bytes)) if is_given else ""


def respond(reply: ConsumerHeartbeatReply | KafkaError) -> ConsumerGroupHeartbeatResponse:
    if isinstance(reply, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=reply.code, error_message=str(reply))
    return ConsumerGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.epoch,
        heartbeat_interval_ms=reply.interval_ms,
        assignment=None if reply.assignment is None else assignment(reply.assignment),
    )


def assignment(partitions: frozenset[TopicIdPartition]) -> Assignment:
    return Assignment([TopicPartitions(*each) for each in by_topic(partitions)])
