"""The consumer protocol inside the classic one: what members write into their opaque bytes.

A version stands before each message. A version from the future is read as the newest one known,
since versions only add to the end.
"""

from collections.abc import Mapping

from penstock.errors import ProtocolError
from penstock.wire.apis import DATA_MESSAGES
from penstock.wire.codec import M, decode, encode
from penstock.wire.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
    TopicPartition,
)
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

CONSUMER = "consumer"
"""The protocol type whose metadata the coordinator understands; all others are opaque."""


def version_of(data: bytes) -> int:
    """What stands first; `ProtocolError` if nothing does."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError("no version before the consumer protocol's message")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a member wants and has; `ProtocolError` if these bytes do not tell."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's share; `ProtocolError` if these bytes are none."""
    return _read(ConsumerProtocolAssignment, data)


def _read(message: type[M], data: bytes) -> M:
    version = min(version_of(data), DATA_MESSAGES[message.__name__].high)
    return decode(message, version, data[2:])


def assignment_bytes(partitions: Mapping[str, list[int]], subscription: bytes) -> bytes:
    """A share by topic, in the version in which the member wrote its subscription."""
    highest = DATA_MESSAGES[ConsumerProtocolAssignment.__name__].high
    version = min(version_of(subscription), highest)
    share = ConsumerProtocolAssignment([TopicPartition(*each) for each in partitions.items()])
    return version.to_bytes(2, "big") + encode(share, version)
