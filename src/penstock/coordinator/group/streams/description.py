"""A topology as its application describes it, for people (KIP-1331).

The coordinator keeps it in memory only; a new coordinator requests it from a member again.
"""

from typing import Final

from penstock.coordinator.group.errors import UnknownMemberId
from penstock.coordinator.group.streams.draft import StreamsGroupDraft
from penstock.errors import InvalidRequest
from penstock.wire.messages.streams_group_topology_description_update import (
    TopologyDescription,
    TopologyDescriptionNode,
)

NODE_TYPES = {1, 2, 3}
"""Source, processor, sink."""
MOST_CHARS: Final = 1 << 20
TEXT_CHARS: Final = 16
"""A description has at most `MOST_CHARS`, where each text counts for `TEXT_CHARS` more. That is
room for tens of thousands of nodes. A larger one would stay in memory, and each request for it
would block the event loop.
"""


def put_description(
    draft: StreamsGroupDraft, member_id: str, epoch: int, description: TopologyDescription
) -> None:
    group = draft.group
    if member_id not in group.members:
        raise UnknownMemberId(f"Member {member_id} is not a member of group {group.id}.")
    if group.topology is None or group.topology.epoch != epoch:
        raise InvalidRequest(f"The topology of group {group.id} has another epoch than {epoch}.")
    nodes = [node for each in description.subtopologies for node in each.nodes]
    nodes += [node for each in description.global_stores for node in (each.source, each.processor)]
    ids = [each.subtopology_id for each in description.subtopologies]
    if _chars(ids) + sum(map(_chars, map(_texts, nodes))) > MOST_CHARS:
        raise InvalidRequest("The description of the topology is too large.")
    if any(node.node_type not in NODE_TYPES for node in nodes):
        raise InvalidRequest("A node of the topology has an unknown type.")
    draft.change(description=description)


def _texts(node: TopologyDescriptionNode) -> list[str]:
    one = [node.name, node.sink_topic or ""]
    return one + node.source_topics + node.stores + node.successors


def _chars(texts: list[str]) -> int:
    return sum(map(len, texts)) + TEXT_CHARS * len(texts)
