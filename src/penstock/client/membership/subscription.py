"""Subscriptions and assignments inside JoinGroup and SyncGroup, in Kafka's consumer protocol."""

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

from penstock.client.membership.assignor import SubscribedMember
from penstock.errors import ProtocolError
from penstock.types import TopicPartition, indexes_by_topic
from penstock.wire.codec import decode, encode
from penstock.wire.messages import consumer_protocol_assignment as assignment
from penstock.wire.messages import consumer_protocol_subscription as subscription
from penstock.wire.messages.join_group import JoinGroupResponseMember

VERSION: Final = 3
_NUMBER: Final = Struct(">h")
_GENERATION: Final = Struct(">i")


def encode_subscription(
    topics: Iterable[str], owned: Iterable[TopicPartition], generation: int
) -> bytes:
    """A subscription with the partitions that the member owns.

    The user data has the generation too, where cooperative-sticky members of version 1 look for it.
    """
    message = subscription.ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=_GENERATION.pack(generation),
        owned_partitions=[
            subscription.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in indexes_by_topic(sorted(owned)).items()
        ],
        generation_id=generation,
    )
    return encode(message, VERSION, before=_NUMBER.pack(VERSION))


def decode_subscription(member: JoinGroupResponseMember) -> SubscribedMember:
    """A member of the group; `ProtocolError` if its subscription cannot be read."""
    version, rest = _split(member.metadata)
    found = decode(subscription.ConsumerProtocolSubscription, version, rest)
    generation = found.generation_id
    if generation < 0 and found.user_data is not None and len(found.user_data) == _GENERATION.size:
        (generation,) = _GENERATION.unpack(found.user_data)
    owned = (
        TopicPartition(each.topic, index)
        for each in found.owned_partitions
        for index in each.partitions
    )
    return SubscribedMember(
        member.member_id,
        frozenset(found.topics),
        frozenset(owned),
        generation,
        member.group_instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    message = assignment.ConsumerProtocolAssignment(
        assigned_partitions=[
            assignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in indexes_by_topic(partitions).items()
        ]
    )
    return encode(message, VERSION, before=_NUMBER.pack(VERSION))


def decode_assignment(data: bytes) -> frozenset[TopicPartition]:
    """The assigned partitions; none if the leader sent no bytes."""
    if not data:
        return frozenset()
    version, rest = _split(data)
    found = decode(assignment.ConsumerProtocolAssignment, version, rest)
    return frozenset(
        TopicPartition(each.topic, index)
        for each in found.assigned_partitions
        for index in each.partitions
    )


def _split(data: bytes) -> tuple[int, bytes]:
    """Version and message; a newer version starts with the fields of the newest that we know."""
    try:
        (version,) = _NUMBER.unpack_from(data)
    except error:
        raise ProtocolError("a subscription or assignment has no version") from None
    return min(max(version, 0), VERSION), data[_NUMBER.size :]
