"""Declares which long requests are handled piece by piece, because their items are independent.

Each piece is authorized on its own.
"""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from penstock.broker.context import AnyHandler, Context
from penstock.broker.handling.lazy_handlers import each
from penstock.broker.handling.turns import Pieces, in_pieces
from penstock.types import NO_UUID

if TYPE_CHECKING:
    from penstock.wire.messages.alter_configs import AlterConfigsResource
    from penstock.wire.messages.create_partitions import CreatePartitionsTopic
    from penstock.wire.messages.delete_topics import DeleteTopicState
    from penstock.wire.messages.describe_configs import DescribeConfigsResource
    from penstock.wire.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequestGroup,
    )
    from penstock.wire.messages.incremental_alter_configs import (
        AlterConfigsResource as IncrementalResource,
    )
    from penstock.wire.messages.offset_fetch import OffsetFetchRequestGroup


def in_pieces_each(handlers: Mapping[int, AnyHandler]) -> Mapping[int, AnyHandler]:
    """The handlers, those of `PIECES` split into pieces."""

    def cut(key: int, handler: AnyHandler) -> AnyHandler:
        for each_key, pieces in PIECES:
            if each_key == key:
                handler = in_pieces(handler, pieces)
        return handler

    return each(handlers, cut)


def deletion_key(topic: "DeleteTopicState", ctx: Context) -> Hashable:
    """The topic's name, since a request may name one topic by name and again by id.

    An item with both is refused on its own, without regard to the others.
    """
    if topic.name is not None:
        return topic.name if topic.topic_id == NO_UUID else (topic.name, topic.topic_id)
    return ctx.services.cluster.image.topic_names.get(topic.topic_id, topic.topic_id)


def resource(
    named: "AlterConfigsResource | DescribeConfigsResource | IncrementalResource", _: Context
) -> Hashable:
    return named.resource_type, named.resource_name


def group(
    named: "DescribeShareGroupOffsetsRequestGroup | OffsetFetchRequestGroup", _: Context
) -> Hashable:
    return named.group_id


def grown(topic: "CreatePartitionsTopic", _: Context) -> Hashable:
    return topic.name


def itself(name: Any, _: Context) -> Hashable:
    return str(name)


DESCRIBED: Final = 5
"""Items described per turn: the settings of a broker take ten milliseconds, and so does a large
group.
"""

PIECES: Final[tuple[tuple[int, Pieces], ...]] = (
    (9, Pieces("groups", "groups", group, size=DESCRIBED)),
    (10, Pieces("coordinator_keys", "coordinators")),
    (15, Pieces("groups", "groups", itself, size=DESCRIBED)),
    (20, Pieces("topics", "responses", deletion_key)),
    (20, Pieces("topic_names", "responses", itself)),
    (24, Pieces("transactions", "results_by_transaction")),
    (32, Pieces("resources", "results", resource, size=DESCRIBED)),
    (33, Pieces("resources", "responses", resource, answers_each=True)),
    (37, Pieces("topics", "results", grown)),
    (42, Pieces("groups_names", "results", itself)),
    (44, Pieces("resources", "responses", resource, answers_each=True)),
    (65, Pieces("transactional_ids", "transaction_states", itself, size=DESCRIBED)),
    (69, Pieces("group_ids", "groups", itself, size=DESCRIBED)),
    (77, Pieces("group_ids", "groups", itself, size=DESCRIBED)),
    (89, Pieces("group_ids", "groups", itself, size=DESCRIBED)),
    (90, Pieces("groups", "groups", group)),
)
