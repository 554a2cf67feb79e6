"""Groups and their members, as coordinators describe them."""

from dataclasses import dataclass

from penstock.types import TopicPartition
from penstock.wire.messages import consumer_group_describe, share_group_describe


@dataclass(frozen=True, slots=True)
class ConsumerProtocolMember:
    """A member's additional data in the consumer protocol."""

    epoch: int
    target: tuple[TopicPartition, ...]
    topics: tuple[str, ...]
    regex: str | None


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member as its coordinator describes it, and its assigned partitions."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    place: ConsumerProtocolMember | None = None
    """None for a member of the classic protocol; the name is part of `group describe` in JSON."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members; `strategy` is the name of its assignor."""

    id: str
    state: str
    protocol_type: str
    strategy: str
    members: tuple[MemberDescription, ...]
    type: str = "classic"
    epoch: int | None = None
    """Group epoch; like `assignment_epoch` None for a classic group."""
    assignment_epoch: int | None = None


def assigned_partitions(
    assignment: consumer_group_describe.Assignment | share_group_describe.Assignment,
) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, index)
        for topic in assignment.topic_partitions
        for index in topic.partitions
    )
