"""The iteration order of Java's HashMap, in which Kafka's tools print many rows."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.types import TopicPartition

K = TypeVar("K")
_LOAD = 0.75


def java_hash(text: str) -> int:
    """`String.hashCode` as an unsigned number, over UTF-16 code units."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code


def partition_hash(partition: TopicPartition) -> int:
    """`TopicPartition.hashCode`."""
    return (31 * (31 + partition.partition) + java_hash(partition.topic)) & 0xFFFFFFFF


def java_order(keys: Iterable[K], hashed: Callable[[K], int]) -> list[K]:
    """Keys in the iteration order of a HashMap into which they were put one by one."""
    found = list(dict.fromkeys(keys))
    size = 16
    while len(found) > size * _LOAD:
        size *= 2
    return sorted(found, key=lambda key: _bucket(hashed(key), size))


def _bucket(code: int, size: int) -> int:
    return (code ^ code >> 16) & (size - 1)
