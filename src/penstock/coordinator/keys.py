"""Maps a group id or transactional id to a partition of its internal topic."""

from functools import lru_cache
from struct import iter_unpack


@lru_cache(maxsize=16384)
def partition_for(key: str, count: int) -> int:
    """As every Kafka broker and client computes it: the absolute value of Java's string hash."""
    return abs(_java_hash(key)) % count


@lru_cache(maxsize=4096)
def _java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits.

    The least integer becomes 0, because Java's `abs` cannot represent its absolute value.
    """
    found = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFF_FFFF
    signed = found - (1 << 32) if found >= 1 << 31 else found
    return 0 if signed == -(1 << 31) else signed
