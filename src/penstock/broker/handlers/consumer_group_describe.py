"""ConsumerGroupDescribe (key 69, v0-v1): a group of the consumer protocol and its members.

Refused: groups that do not exist or use the classic protocol; every group if
`group.coordinator.rebalance.protocols` does not list the consumer protocol. Partitions of deleted
topics are left out, since their names are no longer known.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.consumer_protocol import not_served
from penstock.broker.translate.described_groups import described_groups
from penstock.broker.translate.operations import NOT_ASKED, group_operations
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, ConsumerGroupMember
from penstock.coordinator.group.consumer.records import by_topic
from penstock.errors import KafkaError
from penstock.types import TopicIdPartition
from penstock.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The protocol that a member uses."""


def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, ctx: Context
) -> ConsumerGroupDescribeResponse | Parked[ConsumerGroupDescribeResponse]:
    tells = request.include_authorized_operations
    return described_groups(
        request.group_ids,
        ctx.services.coordination.groups.describe_consumer,
        ctx,
        refused=not_served(ctx),
        known=lambda group: described(group, ctx, tells_operations=tells),
        unknown=unknown,
        respond=lambda groups: ConsumerGroupDescribeResponse(groups=groups),
    )


def unknown(name: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=name, error_code=error.code, error_message=str(error))


def described(group: ConsumerGroup, ctx: Context, *, tells_operations: bool) -> DescribedGroup:
    default = ctx.services.coordination.groups.assignors.default
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(default),
        members=[member(each, group, ctx) for each in group.members.values()],
        authorized_operations=group_operations(ctx, group.id) if tells_operations else NOT_ASKED,
    )


def member(each: ConsumerGroupMember, group: ConsumerGroup, ctx: Context) -> Member:
    return Member(
        member_id=each.id,
        instance_id=each.instance_id,
        rack_id=each.rack_id,
        member_epoch=each.epoch,
        client_id=each.client_id,
        client_host=each.client_host,
        subscribed_topic_names=sorted(each.topics),
        subscribed_topic_regex=each.regex or "",
        assignment=assignment(each.holds, ctx),
        target_assignment=assignment(group.target.get(each.id, NO_PARTITIONS), ctx),
        member_type=CONSUMER_MEMBER if each.classic is None else CLASSIC_MEMBER,
    )


def assignment(partitions: frozenset[TopicIdPartition], ctx: Context) -> Assignment:
    names = ctx.services.cluster.image.topic_names
    return Assignment(
        [
            TopicPartitions(topic, names[topic], indexes)
            for topic, indexes in by_topic(partitions)
            if topic in names
        ]
    )
