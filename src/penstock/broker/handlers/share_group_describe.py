"""ShareGroupDescribe (key 77, v1): a share group and its members.

Refused: groups that do not exist or are of another kind. Partitions of deleted topics are left out,
since their names are no longer known.
"""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.described_groups import described_groups
from penstock.broker.translate.operations import NOT_ASKED, group_operations
from penstock.broker.translate.share_requests import not_served
from penstock.coordinator.group.consumer.records import by_topic
from penstock.coordinator.group.share.assignor import NAME
from penstock.coordinator.group.share.group import ShareGroup
from penstock.coordinator.group.share.member import ShareGroupMember
from penstock.errors import KafkaError
from penstock.wire.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)


def share_group_describe(
    request: ShareGroupDescribeRequest, ctx: Context
) -> ShareGroupDescribeResponse | Parked[ShareGroupDescribeResponse]:
    tells = request.include_authorized_operations
    return described_groups(
        request.group_ids,
        ctx.services.coordination.groups.describe_share,
        ctx,
        refused=not_served(ctx),
        known=lambda group: described(group, ctx, tells_operations=tells),
        unknown=unknown,
        respond=lambda groups: ShareGroupDescribeResponse(groups=groups),
    )


def unknown(name: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(group_id=name, error_code=error.code, error_message=str(error))


def described(group: ShareGroup, ctx: Context, *, tells_operations: bool) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=NAME,
        members=[member(each, ctx) for each in group.members.values()],
        authorized_operations=group_operations(ctx, group.id) if tells_operations else NOT_ASKED,
    )


def member(each: ShareGroupMember, ctx: Context) -> Member:
    names = ctx.services.cluster.image.topic_names
    return Member(
        member_id=each.id,
        rack_id=each.rack_id,
        member_epoch=each.epoch,
        client_id=each.client_id,
        client_host=each.client_host,
        subscribed_topic_names=sorted(each.topics),
        assignment=Assignment(
            [
                TopicPartitions(topic, names[topic], indexes)
                for topic, indexes in by_topic(each.assigned)
                if topic in names
            ]
        ),
    )
