"""Which partition of an internal topic a group or a transactional id belongs to."""

from functools import lru_cache
from struct import iter_unpack


@lru_cache(maxsize=16384)
def partition_for(key: str, count: int) -> int:
    """As every Kafka broker and client computes it: Java's hash of the name, without its sign."""
    return abs(_java_hash(key)) % count


@lru_cache(maxsize=4096)
def _java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits; the least has no absolute value there."""
    found = 0
    for (unit,) in iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        found = (31 * found + unit) & 0xFFFF_FFFF
    signed = found - (1 << 32) if found >= 1 << 31 else found
    return 0 if signed == -(1 << 31) else signed
