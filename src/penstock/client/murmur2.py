"""The hash with which Kafka's Java client chooses the partition of a key."""

from struct import Struct

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF
_WORD = Struct("<I")


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with Kafka's seed; unsigned."""
    size = len(data)
    whole = size & ~3
    mixed = _SEED ^ size
    for (word,) in _WORD.iter_unpack(data[:whole]):
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        mixed = mixed * _MULTIPLIER & _MASK ^ word
    if size > whole:
        mixed = (mixed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    mixed = (mixed ^ mixed >> 13) * _MULTIPLIER & _MASK
    return mixed ^ mixed >> 15
