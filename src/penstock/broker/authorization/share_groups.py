"""Guards of share groups. Handlers check the topics of ShareFetch and ShareAcknowledge."""

from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.groups import with_refused, without_hidden_groups
from penstock.broker.authorization.guard import GROUP, MESSAGES, TOPIC, Guard, NotAuthorized, then
from penstock.broker.authorization.items import answer_by_permission, each_item
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.context import AnyHandler, Context
from penstock.security.acl import AclOperation
from penstock.wire.messages import alter_share_group_offsets as altering
from penstock.wire.messages import delete_share_group_offsets as deleting
from penstock.wire.messages import share_group_describe as describing

Op = AclOperation

_describe = each_item(
    "group_ids",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    Refusal(
        lambda name, _: describing.DescribedGroup(
            error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
        )
    ),
    "groups",
    describing.ShareGroupDescribeResponse,
)


def describe(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def names(group: Any) -> set[str]:
        return {
            topic
            for member in group.members
            for topic in (
                *member.subscribed_topic_names,
                *(each.topic_name for each in member.assignment.topic_partitions),
            )
        }

    reply = _describe(request, ctx, handler, access)
    return without_hidden_groups(reply, access, names, describing.DescribedGroup)


_NOT_ALTERED = Refusal(
    lambda topic, parts: altering.AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, partitions=parts
    ),
    attrgetter("partitions"),
    lambda _, each: altering.AlterShareGroupOffsetsResponsePartition(
        each.partition_index, TOPIC, MESSAGES[TOPIC]
    ),
)
_NOT_DELETED = Refusal(
    lambda topic, _: deleting.DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=TOPIC, error_message=MESSAGES[TOPIC]
    )
)


def _offsets(operation: AclOperation, refusal: Refusal) -> Guard:
    def guard(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
        if not access.group(operation, request.group_id):
            raise NotAuthorized(GROUP)

        def answered(allowed: list[Any], others: list[Any]) -> Any:
            def joined(denied: list[Any]) -> Any:
                reply = handler(replace(request, topics=allowed), ctx)
                return then(reply, lambda found: with_refused(found, "responses", denied))

            return when_refused(others, refusal, joined)

        return answer_by_permission(
            request.topics, lambda each: access.topic(Op.READ, each.topic_name), answered
        )

    return guard


alter_offsets: Guard = _offsets(Op.READ, _NOT_ALTERED)
delete_offsets: Guard = _offsets(Op.DELETE, _NOT_DELETED)
