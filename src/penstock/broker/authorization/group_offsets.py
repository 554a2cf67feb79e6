"""Guards of requests for the offsets of groups: of some topics of each group, or of all."""

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import GROUP, MESSAGES, TOPIC, then
from penstock.broker.authorization.items import (
    answer_by_permission,
    split_by_permission,
    split_in_slices,
    topic_named_or_id,
)
from penstock.broker.authorization.refusals import Refusal, all_refused, when_refused
from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.turns import PARTITIONS_A_TURN
from penstock.broker.parked import Parked
from penstock.errors import ErrorCode
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID
from penstock.wire.messages import describe_share_group_offsets as describing
from penstock.wire.messages import offset_fetch as fetching

Op = AclOperation


class Offsets(NamedTuple):
    """The differences between the two requests for offsets of many groups."""

    may: Callable[[Access, Any, Context], bool]
    """Whether the client may request a topic's offsets."""
    sees: Callable[[Access, Any, Context], bool]
    """Whether the client may see a topic of the response, which may have all topics of a group."""
    group_refused: Callable[[Any], Any]
    refusal: Refusal
    empty: Callable[[], Any]


class PermittedGroups:
    """The groups that the client may query, and the refusals."""

    __slots__ = ("allowed", "denied", "hidden")

    def __init__(self) -> None:
        self.allowed: list[Any] = []
        self.denied: list[Any] = []
        self.hidden: dict[str, list[Any]] = {}
        """Refused topics of allowed groups."""

    def allow(self, group: Any, topics: list[Any], hidden: list[Any]) -> None:
        self.allowed.append(replace(group, topics=topics))
        self.hidden[group.group_id] = hidden

    def shown(self, group: Any, topics: list[Any]) -> Any:
        """The group with its visible and refused topics; a group with an error shows only the
        error.
        """
        hidden = [] if group.error_code else self.hidden.get(group.group_id, [])
        return replace(group, topics=[*topics, *hidden])


def of_groups(of: Offsets, request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if name_many(request.groups, of.refusal):
        return _of_groups_in_turns(of, request, ctx, handler, access)
    permitted = PermittedGroups()
    whole, parts, part = of.refusal
    for group in request.groups:
        if not access.group(Op.DESCRIBE, group.group_id):
            permitted.denied.append(of.group_refused(group))
        elif group.topics is None:
            permitted.allowed.append(group)
        else:
            topics, others = split_by_permission(
                group.topics, lambda each: of.may(access, each, ctx)
            )
            hidden = [whole(each, [part(each, one) for one in parts(each)]) for each in others]
            permitted.allow(group, topics, hidden)

    def joined(found: Any) -> Any:
        groups = [
            permitted.shown(group, [each for each in group.topics if of.sees(access, each, ctx)])
            for group in found.groups
        ]
        return replace(found, groups=[*groups, *permitted.denied])

    return then(_from_handler(of, permitted, request, ctx, handler), joined)


async def _of_groups_in_turns(
    of: Offsets, request: Any, ctx: Context, handler: AnyHandler, access: Access
) -> Any:
    permitted = PermittedGroups()
    for group in request.groups:
        if not access.group(Op.DESCRIBE, group.group_id):
            permitted.denied.append(of.group_refused(group))
        elif group.topics is None:
            permitted.allowed.append(group)
        else:
            topics, others = await split_in_slices(
                group.topics,
                lambda some: split_by_permission(some, lambda each: of.may(access, each, ctx)),
            )
            permitted.allow(group, topics, await all_refused(others, of.refusal))
    found = _from_handler(of, permitted, request, ctx, handler)
    if isinstance(found, Coroutine):
        found = await found
    if isinstance(found, Parked):
        found = await ctx.services.waiters.future(found)
    groups = []
    for group in found.groups:
        seen, _ = await split_in_slices(
            group.topics,
            lambda some: split_by_permission(some, lambda each: of.sees(access, each, ctx)),
        )
        groups.append(permitted.shown(group, seen))
    return replace(found, groups=[*groups, *permitted.denied])


def _from_handler(
    of: Offsets, permitted: PermittedGroups, request: Any, ctx: Context, handler: AnyHandler
) -> Any:
    if not permitted.allowed:
        return of.empty()
    return handler(replace(request, groups=permitted.allowed), ctx)


def name_many(groups: Iterable[Any], refusal: Refusal) -> bool:
    """Whether the groups, their topics and partitions take more than one turn."""
    count = 0
    for group in groups:
        count += 1
        for topic in group.topics or ():
            count += 1 + len(refusal.parts(topic))
            if count > PARTITIONS_A_TURN:
                return True
    return count > PARTITIONS_A_TURN


def _sees_fetched(access: Access, topic: Any, ctx: Context) -> bool:
    name: str | None = topic.name
    if topic.topic_id != NO_UUID:
        name = ctx.services.cluster.image.topic_names.get(topic.topic_id)
    return name is None or access.topic(Op.DESCRIBE, name, logs=False)


_of_groups = partial(
    of_groups,
    Offsets(
        topic_named_or_id(Op.DESCRIBE),
        _sees_fetched,
        lambda group: fetching.OffsetFetchResponseGroup(group.group_id, error_code=GROUP),
        Refusal(
            lambda topic, parts: fetching.OffsetFetchResponseTopics(
                topic.name, topic.topic_id, parts
            ),
            attrgetter("partition_indexes"),
            lambda _, index: fetching.OffsetFetchResponsePartitions(
                index, committed_offset=-1, error_code=TOPIC
            ),
        ),
        fetching.OffsetFetchResponse,
    ),
)
describe_share_offsets = partial(
    of_groups,
    Offsets(
        lambda access, topic, _: access.topic(Op.DESCRIBE, topic.topic_name),
        lambda access, topic, _: access.topic(Op.DESCRIBE, topic.topic_name, logs=False),
        lambda group: describing.DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id, error_code=GROUP, error_message=MESSAGES[GROUP]
        ),
        Refusal(
            lambda topic, parts: describing.DescribeShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, partitions=parts
            ),
            attrgetter("partitions"),
            lambda _, index: describing.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=-1,
                error_code=TOPIC,
                error_message=MESSAGES[TOPIC],
            ),
        ),
        describing.DescribeShareGroupOffsetsResponse,
    ),
)


def offset_fetch(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    guard = _of_groups if ctx.version >= 8 else _of_one_group
    return guard(request, ctx, handler, access)


def _not_fetched(code: ErrorCode) -> Refusal:
    return Refusal(
        lambda topic, parts: fetching.OffsetFetchResponseTopic(topic.name, parts),
        attrgetter("partition_indexes"),
        lambda _, index: fetching.OffsetFetchResponsePartition(
            index, committed_offset=-1, error_code=code
        ),
    )


def _of_one_group(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.DESCRIBE, request.group_id):
        if ctx.version < 2:
            return when_refused(
                request.topics or (),
                _not_fetched(GROUP),
                lambda refused: fetching.OffsetFetchResponse(topics=refused),
            )
        return fetching.OffsetFetchResponse(error_code=GROUP)
    if request.topics is None:

        def visible(found: Any) -> Any:
            seen, _ = split_by_permission(
                found.topics, lambda each: access.topic(Op.DESCRIBE, each.name, logs=False)
            )
            return replace(found, topics=seen)

        return then(handler(request, ctx), visible)

    def answered(allowed: list[Any], others: list[Any]) -> Any:
        if not others:
            return handler(request, ctx)

        def joined(refused: list[Any]) -> Any:
            reply = handler(replace(request, topics=allowed), ctx)
            return then(reply, lambda found: replace(found, topics=[*found.topics, *refused]))

        return when_refused(others, _not_fetched(TOPIC), joined)

    return answer_by_permission(
        request.topics, lambda each: access.topic(Op.DESCRIBE, each.name), answered
    )
