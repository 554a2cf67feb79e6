"""Maps a group id or transactional id to a partition of its internal topic."""

from functools import lru_cache
from struct import iter_unpack
from typing import Final

LONGEST_KEPT: Final = 255
"""The longest key whose hash is cached.

Keys may have 32 KB: a client that names many such groups would fill the memory for good.
"""


def partition_for(key: str, count: int) -> int:
    """As Kafka brokers and clients do: the absolute value of Java's string hash, modulo `count`."""
    found = _java_hash(key) if len(key) > LONGEST_KEPT else _kept_hash(key)
    return abs(found) % count


def _java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits.

    The least integer becomes 0, because Java's `abs` cannot represent its absolute value.
    """
    found = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFF_FFFF
    signed = found - (1 << 32) if found >= 1 << 31 else found
    return 0 if signed == -(1 << 31) else signed


_kept_hash = lru_cache(maxsize=16384)(_java_hash)
