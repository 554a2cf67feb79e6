"""Checks whether the replicas of a partition have the same batches. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from penstock.types import BrokerId, TopicPartition


class HeldBatch(NamedTuple):
    """A batch of a replica: its last offset and its checksum."""

    last_offset: int
    crc: int


class Checked(NamedTuple):
    """The offset up to which replicas were compared, the remaining lag and the first difference."""

    next_offset: int
    lag: int
    difference: str | None


def checked(
    partition: TopicPartition,
    offset: int,
    held: Mapping[BrokerId, Sequence[HeldBatch]],
    high_watermark: int,
) -> Checked:
    """Compare from an offset on, as far as every replica has sent batches.

    A difference is reported once and then skipped, so that later batches are compared too.
    """
    replicas = sorted(held)
    first, others = replicas[0], replicas[1:]
    difference = None
    for index in range(min(len(batches) for batches in held.values())):
        ours = held[first][index]
        if ours.last_offset >= high_watermark:
            break  # not yet replicated everywhere, and may still be truncated
        for other in others:
            theirs = held[other][index]
            if difference is None and theirs.last_offset != ours.last_offset:
                difference = (
                    f"partition {partition}: replica {first}'s offset {ours.last_offset} doesn't "
                    f"match replica {other}'s offset {theirs.last_offset}"
                )
            elif difference is None and theirs.crc != ours.crc:
                difference = (
                    f"partition {partition} has unmatched checksum at offset {ours.last_offset}; "
                    f"replica {first}'s checksum {ours.crc}; replica {other}'s checksum "
                    f"{theirs.crc}"
                )
        offset = ours.last_offset + 1
    return Checked(offset, max(high_watermark - offset, 0), difference)
