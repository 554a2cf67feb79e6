"""Tells whether a produce request names too many partitions, before it is decoded.

The limit is more than any client names. The request's records stay views of the receive buffer, so
it is decoded at once, on the loop. A partition without records takes six bytes: a request of 100 MB
could name 16 million.
"""

from collections.abc import Callable
from typing import Final

from penstock.types import Buffer
from penstock.wire.primitives import MALFORMED, skip_tags, unpacker, uvarint

MOST_PARTITIONS: Final = 20_000
"""With Kafka's default of `max.request.size` a producer can name 15,000 with a record each."""
FLEXIBLE, BY_ID = 9, 13
SMALLEST_BYTES: Final = 6 * MOST_PARTITIONS
"""A smaller request cannot name too many."""

_int16, _int32 = unpacker("h"), unpacker("i")
_Length = Callable[[Buffer, int], tuple[int, int]]


def names_too_many(buf: Buffer, at: int, version: int) -> bool:
    """Whether it names too many. False for a malformed request, whose decoding fails too."""
    try:
        return _counts_too_many(buf, at, version)
    except MALFORMED:
        return False


def _counts_too_many(buf: Buffer, at: int, version: int) -> bool:
    flexible = version >= FLEXIBLE
    text, size = (_compact, _compact) if flexible else (_short, _long)
    length, at = text(buf, at)
    topics, at = size(buf, at + max(length, 0) + 6)  # after acks and the timeout
    left = MOST_PARTITIONS - topics
    for _ in range(topics):
        if left < 0:
            return True
        if version >= BY_ID:
            at += 16
        else:
            length, at = text(buf, at)
            at += length
        partitions, at = size(buf, at)
        left -= partitions
        if left < 0:
            return True
        for _ in range(partitions):
            length, at = size(buf, at + 4)
            at += max(length, 0)
            if flexible:
                at = skip_tags(buf, at + 1, buf[at])
        if flexible:
            at = skip_tags(buf, at + 1, buf[at])
    return left < 0


def _compact(buf: Buffer, at: int) -> tuple[int, int]:
    length, at = uvarint(buf, at)
    return length - 1, at


def _short(buf: Buffer, at: int) -> tuple[int, int]:
    return _int16(buf, at)[0], at + 2


def _long(buf: Buffer, at: int) -> tuple[int, int]:
    return _int32(buf, at)[0], at + 4
