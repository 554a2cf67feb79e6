"""Guards of groups, their members and their offsets."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    GROUP,
    MESSAGES,
    TOPIC,
    TRANSACTION,
    NotAuthorized,
    then,
)
from penstock.broker.authorization.items import each_item, parted, topic_named_or_id
from penstock.broker.authorization.whole import check_cluster
from penstock.broker.context import AnyHandler, Context
from penstock.errors import ErrorCode
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID
from penstock.wire.messages import (
    consumer_group_describe as describing_consumers,
)
from penstock.wire.messages import (
    describe_groups as describing_groups,
)
from penstock.wire.messages import (
    offset_fetch as fetching_offsets,
)
from penstock.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from penstock.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Op = AclOperation


def one_group(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.READ, request.group_id):
        raise NotAuthorized(GROUP)
    return handler(request, ctx)


def heartbeat(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    """ConsumerGroupHeartbeat also names the topics that it wants."""
    if not access.group(Op.READ, request.group_id):
        raise NotAuthorized(GROUP)
    names = request.subscribed_topic_names or ()
    if not all(access.topic(Op.DESCRIBE, each) for each in names):
        raise NotAuthorized(TOPIC)
    return handler(request, ctx)


def list_groups(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    reply = handler(request, ctx)
    if access.cluster(Op.DESCRIBE, logs=False):
        return reply

    def visible(found: Any) -> Any:
        groups = [e for e in found.groups if access.group(Op.DESCRIBE, e.group_id, logs=False)]
        return replace(found, groups=groups)

    return then(reply, visible)


describe_groups = each_item(
    "groups",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    lambda name, _: describing_groups.DescribedGroup(
        error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
    ),
    "groups",
    describing_groups.DescribeGroupsResponse,
)
_describe_consumer_groups = each_item(
    "group_ids",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    lambda name, _: describing_consumers.DescribedGroup(
        error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
    ),
    "groups",
    describing_consumers.ConsumerGroupDescribeResponse,
)


def describe_consumer_groups(
    request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    """A group whose topics may not all be seen is not shown."""

    def names(group: Any) -> set[str]:
        return {
            topic
            for member in group.members
            for topic in (
                *member.subscribed_topic_names,
                *(each.topic_name for each in member.assignment.topic_partitions),
                *(each.topic_name for each in member.target_assignment.topic_partitions),
            )
        }

    def shown(group: Any) -> Any:
        if all(access.topic(Op.DESCRIBE, each, logs=False) for each in names(group)):
            return group
        return describing_consumers.DescribedGroup(
            error_code=TOPIC,
            error_message="The group has described topic(s) that the client is not authorized to "
            "describe.",
            group_id=group.group_id,
        )

    reply = _describe_consumer_groups(request, ctx, handler, access)
    return then(reply, lambda found: replace(found, groups=[shown(each) for each in found.groups]))


delete_groups = each_item(
    "groups_names",
    lambda access, name, _: access.group(Op.DELETE, name),
    lambda name, _: DeletableGroupResult(name, GROUP, MESSAGES[GROUP]),
    "results",
    DeleteGroupsResponse,
)
_commit_topics = each_item(
    "topics",
    topic_named_or_id(Op.READ),
    lambda topic, _: OffsetCommitResponseTopic(
        topic.name,
        topic.topic_id,
        [OffsetCommitResponsePartition(each.partition_index, TOPIC) for each in topic.partitions],
    ),
    "topics",
    OffsetCommitResponse,
)


def offset_commit(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.READ, request.group_id):
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic.name,
                    topic.topic_id,
                    [
                        OffsetCommitResponsePartition(each.partition_index, GROUP)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    return _commit_topics(request, ctx, handler, access)


def _txn_topic_refused(topic: Any, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        topic.name,
        topic.topic_id,
        [TxnOffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
    )


_commit_txn_topics = each_item(
    "topics",
    topic_named_or_id(Op.READ),
    lambda topic, _: _txn_topic_refused(topic, TOPIC),
    "topics",
    TxnOffsetCommitResponse,
)


def txn_offset_commit(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    code = None
    if not access.transaction(Op.WRITE, request.transactional_id):
        code = TRANSACTION
    elif not access.group(Op.READ, request.group_id):
        code = GROUP
    if code is not None:
        return TxnOffsetCommitResponse(
            topics=[_txn_topic_refused(each, code) for each in request.topics]
        )
    return _commit_txn_topics(request, ctx, handler, access)


def offset_delete(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.DELETE, request.group_id):
        raise NotAuthorized(GROUP)
    allowed, others = parted(request.topics, lambda each: access.topic(Op.READ, each.name))
    denied = [
        OffsetDeleteResponseTopic(
            topic.name,
            [
                OffsetDeleteResponsePartition(each.partition_index, TOPIC)
                for each in topic.partitions
            ],
        )
        for topic in others
    ]
    if not denied:
        return handler(request, ctx)

    def joined(found: Any) -> Any:
        """What is wrong with the group is all that is told."""
        return found if found.error_code else replace(found, topics=[*found.topics, *denied])

    return then(handler(replace(request, topics=allowed), ctx), joined)


def offset_fetch(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if ctx.version < 8:
        return _offset_fetch_of_one(request, ctx, handler, access)
    allowed, denied, hidden = [], [], {}
    may = topic_named_or_id(Op.DESCRIBE)
    for group in request.groups:
        if not access.group(Op.DESCRIBE, group.group_id):
            denied.append(
                fetching_offsets.OffsetFetchResponseGroup(group.group_id, error_code=GROUP)
            )
            continue
        topics = group.topics
        if topics is not None:
            topics, others = parted(group.topics, lambda each: may(access, each, ctx))
            hidden[group.group_id] = [
                fetching_offsets.OffsetFetchResponseTopics(
                    each.name,
                    each.topic_id,
                    [
                        fetching_offsets.OffsetFetchResponsePartitions(
                            index, committed_offset=-1, error_code=TOPIC
                        )
                        for index in each.partition_indexes
                    ],
                )
                for each in others
            ]
        allowed.append(replace(group, topics=topics))

    def joined(found: Any) -> Any:
        groups = [
            replace(
                each,
                topics=[
                    *_visible(each.topics, ctx, access),
                    *([] if each.error_code else hidden.get(each.group_id, [])),
                ],
            )
            for each in found.groups
        ]
        return replace(found, groups=[*groups, *denied])

    reply = (
        handler(replace(request, groups=allowed), ctx)
        if allowed
        else fetching_offsets.OffsetFetchResponse()
    )
    return then(reply, joined)


def _visible(topics: Iterable[Any], ctx: Context, access: Access) -> list[Any]:
    """Of all topics of a group, those that may be seen."""
    names = ctx.services.cluster.image.topic_names

    def name(topic: Any) -> str | None:
        by_id = getattr(topic, "topic_id", NO_UUID) != NO_UUID
        return names.get(topic.topic_id) if by_id else topic.name

    return [
        each
        for each in topics
        if (found := name(each)) is None or access.topic(Op.DESCRIBE, found, logs=False)
    ]


def _offset_fetch_of_one(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def refused(topics: Iterable[Any], code: ErrorCode) -> list[Any]:
        return [
            fetching_offsets.OffsetFetchResponseTopic(
                each.name,
                [
                    fetching_offsets.OffsetFetchResponsePartition(
                        index, committed_offset=-1, error_code=code
                    )
                    for index in each.partition_indexes
                ],
            )
            for each in topics
        ]

    if not access.group(Op.DESCRIBE, request.group_id):
        if ctx.version < 2:
            return fetching_offsets.OffsetFetchResponse(topics=refused(request.topics or (), GROUP))
        return fetching_offsets.OffsetFetchResponse(error_code=GROUP)
    hidden: list[Any] = []
    if request.topics is not None:
        allowed, others = parted(request.topics, lambda each: access.topic(Op.DESCRIBE, each.name))
        hidden = refused(others, TOPIC)
        request = replace(request, topics=allowed)

    def joined(found: Any) -> Any:
        return replace(found, topics=[*_visible(found.topics, ctx, access), *hidden])

    return then(handler(request, ctx), joined)


def find_coordinator(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if request.key_type not in {0, 1}:
        check_cluster(access, (Op.CLUSTER_ACTION,))
        return handler(request, ctx)
    may, code = (
        (access.group, GROUP) if request.key_type == 0 else (access.transaction, TRANSACTION)
    )
    if ctx.version < 4:
        if may(Op.DESCRIBE, request.key):
            return handler(request, ctx)
        return FindCoordinatorResponse(
            error_code=code, error_message=MESSAGES[code], node_id=-1, port=-1
        )
    allowed, denied = parted(request.coordinator_keys, lambda each: may(Op.DESCRIBE, each))
    if not denied:
        return handler(request, ctx)
    refused = [Coordinator(each, -1, "", -1, code, MESSAGES[code]) for each in denied]
    reply = (
        handler(replace(request, coordinator_keys=allowed), ctx)
        if allowed
        else FindCoordinatorResponse()
    )
    return then(reply, lambda found: replace(found, coordinators=[*found.coordinators, *refused]))
