"""Plans of reassignments: as files, and for another replication factor. Pure, but for files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.controller.balance import PlannedMove
from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition


class _Partition(msgspec.Struct):
    topic: str
    partition: int
    replicas: list[int]


class _Plan(msgspec.Struct):
    """As kafka-reassign-partitions reads and writes it."""

    partitions: list[_Partition]
    version: int = 1


def read_plan(path: Path) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Plan)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a reassignment: {error}") from None
    if not found.partitions:
        raise ConfigError(f"{path} names no partition")
    targets: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for each in found.partitions:
        tp = TopicPartition(each.topic, each.partition)
        if not each.replicas or len(set(each.replicas)) < len(each.replicas):
            raise ConfigError(f"{path}: replicas of {tp.topic}-{tp.partition} are missing or twice")
        if tp in targets:
            raise ConfigError(f"{path}: {tp.topic}-{tp.partition} is there twice")
        targets[tp] = tuple(map(BrokerId, each.replicas))
    return targets


def with_factor(
    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
    brokers: Sequence[BrokerId],
    factor: int,
) -> list[PlannedMove]:
    """Add the brokers with the fewest replicas, or take away the last, those of brokers that are
    down first: a partition with no other replica would have no leader.
    """
    if factor > len(brokers):
        raise ConfigError(f"--replication-factor {factor}: there are only {len(brokers)} brokers")
    held = Counter(broker for each in replicas.values() for broker in each)
    moves = []
    for tp, before in sorted(replicas.items()):
        kept = (
            sorted(before, key=lambda each: each not in brokers) if factor < len(before) else before
        )
        after = list(kept[:factor])
        while len(after) < factor:
            free = [each for each in brokers if each not in after]
            added = min(free, key=lambda each: (held[each], each))
            held[added] += 1
            after.append(added)
        if tuple(after) != before:
            moves.append(PlannedMove(tp, before, tuple(after)))
    return moves


def moves_of(
    targets: Mapping[TopicPartition, tuple[BrokerId, ...]],
    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
) -> list[PlannedMove]:
    """What a file changes; raises for a partition that does not exist."""
    for tp in targets:
        if tp not in replicas:
            raise ConfigError(f"{tp.topic}-{tp.partition} does not exist")
    return [
        PlannedMove(tp, replicas[tp], after)
        for tp, after in targets.items()
        if replicas[tp] != after
    ]


def progress_row(
    tp: TopicPartition, adding: Sequence[int], copied_bytes: int, total_bytes: int
) -> dict[str, Any]:
    return {
        "topic": tp.topic,
        "partition": tp.partition,
        "adding": list(adding),
        "copied_bytes": min(copied_bytes, total_bytes),
        "total_bytes": total_bytes,
    }
