"""Shared by OffsetCommit and TxnOffsetCommit."""

from collections.abc import Callable, Sequence
from typing import Protocol

from penstock.broker.translate.pending_replies import code_for
from penstock.coordinator.result import Refused
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage
from penstock.metadata.topic_names import topic_name
from penstock.replication.partitions import UnknownPartition
from penstock.types import TopicPartition, Uuid

CommitTarget = TopicPartition | KafkaError
"""A partition in a request, or why no offset can be committed for it."""


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


def commit_targets(topic: NamedTopic, image: ClusterImage, *, by_id: bool) -> list[CommitTarget]:
    """The topic's partitions in the order of the request."""
    try:
        name = topic_name(topic.name, topic.topic_id, image, by_id=by_id)
    except KafkaError as error:
        return [error] * len(topic.partitions)
    return [_target(TopicPartition(name, part.partition_index), image) for part in topic.partitions]


def _target(target: TopicPartition, image: ClusterImage) -> CommitTarget:
    return target if image.partition(target) else UnknownPartition(f"{target} does not exist")


def codes(
    replies: Sequence[Refused], known_as: dict[type[KafkaError], ErrorCode]
) -> Callable[[CommitTarget], ErrorCode]:
    """A function that returns the error code of each target, in order. `known_as` are errors for
    which the API has another code.
    """
    rest = iter(replies)

    def code(target: CommitTarget) -> ErrorCode:
        refused = target if isinstance(target, KafkaError) else next(rest)
        if refused is not None and type(refused) in known_as:
            return known_as[type(refused)]
        return code_for(refused)

    return code
