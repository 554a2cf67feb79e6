"""Guards of streams groups. Permission to create internal topics is checked on creation."""

from collections.abc import Iterable
from typing import Any

from penstock.broker.acls.access import Access
from penstock.broker.authorization.groups import when_described, without_hidden_groups
from penstock.broker.authorization.guard import GROUP, MESSAGES, NotAuthorized
from penstock.broker.authorization.items import each_item
from penstock.broker.authorization.refusals import Refusal
from penstock.broker.context import AnyHandler, Context
from penstock.security.acl import AclOperation
from penstock.wire.messages import streams_group_describe as describing

Op = AclOperation


def topics(subtopologies: Iterable[Any] | None) -> set[str]:
    """Every topic that a topology names."""
    found: set[str] = set()
    for each in subtopologies or ():
        found |= {*each.source_topics, *each.repartition_sink_topics}
        found |= {
            info.name for info in (*each.repartition_source_topics, *each.state_changelog_topics)
        }
    return found


def heartbeat(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.group(Op.READ, request.group_id):
        raise NotAuthorized(GROUP)
    named = topics(request.topology.subtopologies) if request.topology is not None else set()
    return when_described(named, request, ctx, handler, access)


_describe = each_item(
    "group_ids",
    lambda access, name, _: access.group(Op.DESCRIBE, name),
    Refusal(
        lambda name, _: describing.DescribedGroup(
            error_code=GROUP, error_message=MESSAGES[GROUP], group_id=name
        )
    ),
    "groups",
    describing.StreamsGroupDescribeResponse,
)


def described_topics(description: describing.TopologyDescription | None) -> set[str]:
    """Every topic in a description, which also names topics that the topology leaves out: sinks,
    and sources of global stores.
    """
    if description is None:
        return set()
    nodes = [node for each in description.subtopologies for node in each.nodes]
    nodes += [node for each in description.global_stores for node in (each.source, each.processor)]
    return {name for node in nodes for name in (*node.source_topics, node.sink_topic) if name}


def describe(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def names(group: Any) -> set[str]:
        found = topics(group.topology.subtopologies) if group.topology is not None else set()
        return found | described_topics(group.topology_description)

    reply = _describe(request, ctx, handler, access)
    return without_hidden_groups(reply, access, names, describing.DescribedGroup)
