"""What the two ways of committing offsets share: alone, and within a transaction."""

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.broker.translate.pending_replies import code_for
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.metadata.topic_names import topic_name
from penstock.replication.partitions import UnknownPartition
from penstock.types import TopicPartition, Uuid

Place = TopicPartition | KafkaError
"""A partition that a request names, or why nothing can be committed for it."""


class NamedPartition(Protocol):
    """A partition of a topic in either request."""

    @property
    def partition_index(self) -> int: ...


class NamedTopic(Protocol):
    """A topic in either request."""

    @property
    def name(self) -> str: ...

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[NamedPartition]: ...


def places(topic: NamedTopic, image: ClusterImage, *, by_id: bool) -> list[Place]:
    """The topic's partitions in the order of the request."""
    try:
        name = topic_name(topic.name, topic.topic_id, image, by_id=by_id)
    except KafkaError as error:
        return [error] * len(topic.partitions)
    return [_place(TopicPartition(name, part.partition_index), image) for part in topic.partitions]


def _place(where: TopicPartition, image: ClusterImage) -> Place:
    return where if image.partition(where) else UnknownPartition(f"{where} does not exist")


def codes(
    replies: Sequence[Refused], known_as: dict[type[KafkaError], ErrorCode]
) -> Callable[[Place], ErrorCode]:
    """Gives each place its code, in order; `known_as` are refusals that the API calls otherwise."""
    rest = iter(replies)

    def code(where: Place) -> ErrorCode:
        refused = where if isinstance(where, KafkaError) else next(rest)
        if refused is not None and type(refused) in known_as:
            return known_as[type(refused)]
        return code_for(refused)

    return code
