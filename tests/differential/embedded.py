"""Topic names inside bytes that are opaque to a broker: consumers write them there."""

from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import ProtocolError
from penstock.wire.codec import decode, encode
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.schema import Message

FIELDS: Mapping[str, type[Message]] = {
    "metadata": ConsumerProtocolSubscription,
    "member_metadata": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
    "member_assignment": ConsumerProtocolAssignment,
}
"""The content of the fields with these names, if a consumer wrote them."""


def renamed(name: str, data: bytes, mapped: Callable[[Any], Any]) -> bytes:
    """The bytes with other names in them; bytes that cannot be parsed stay unchanged."""
    version = int.from_bytes(data[:2], "big")
    if not 0 <= version <= 3:
        return data
    try:
        before = decode(FIELDS[name], version, data[2:])
    except ProtocolError:
        return data
    after = mapped(before)
    return data if after == before else data[:2] + encode(after, version)
