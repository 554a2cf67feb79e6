"""The order of Java's HashMap, in which Kafka's tools print many of their rows."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.types import TopicPartition

K = TypeVar("K")
_LOAD = 0.75


def java_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number; over UTF-16 units, as Java counts characters."""
    units = text.encode("utf-16-be")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code


def partition_hash(partition: TopicPartition) -> int:
    """`TopicPartition.hashCode`."""
    return (31 * (31 + partition.partition) + java_hash(partition.topic)) & 0xFFFFFFFF


def java_order(keys: Iterable[K], hashed: Callable[[K], int]) -> list[K]:
    """Keys in the order of a HashMap that they were put into one after another."""
    found = list(dict.fromkeys(keys))
    size = 16
    while len(found) > size * _LOAD:
        size *= 2
    return sorted(found, key=lambda key: _bucket(hashed(key), size))


def _bucket(code: int, size: int) -> int:
    return (code ^ code >> 16) & (size - 1)
