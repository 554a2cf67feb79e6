"""The embedded protocol: the messages of consumers in the opaque bytes of the classic protocol.

Each message starts with its version. A newer version than any known is read as the newest known
one, since versions only append fields.
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
"""The protocol type whose metadata the coordinator can read; all others are opaque."""


def version_of(data: bytes) -> int:
    """The leading version; `ProtocolError` if there is none."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        raise ProtocolError("the consumer's embedded message has no version")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's topics and owned partitions; `ProtocolError` if the bytes are something else."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment; `ProtocolError` if the bytes are not an assignment."""
    return _read(ConsumerProtocolAssignment, data)


def _read(message: type[M], data: bytes) -> M:
    version = min(version_of(data), DATA_MESSAGES[message.__name__].high)
    return decode(message, version, data[2:])


def assignment_bytes(
    partitions: Mapping[str, list[int]], subscription: bytes, user_data: bytes | None = None
) -> bytes:
    """An assignment by topic, encoded in the version of the member's subscription."""
    highest = DATA_MESSAGES[ConsumerProtocolAssignment.__name__].high
    version = min(version_of(subscription), highest)
    assigned = [TopicPartition(*each) for each in partitions.items()]
    assignment = ConsumerProtocolAssignment(assigned, user_data)
    return version.to_bytes(2, "big") + encode(assignment, version)
