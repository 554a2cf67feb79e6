"""Reassignment plans: files, and changes of the replication factor. Pure, except for files."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.client.reassignment_plan import ANY_DIRECTORY, BadPlan, parse_plan
from penstock.controller.balance import PlannedMove
from penstock.controller.broker_locations import BrokerLocations
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition


def read_plan(path: Path) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    try:
        plan = parse_plan(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except BadPlan as error:
        raise ConfigError(f"{path}: {error}") from None
    for tp, target in plan.items():
        if set(target.directories) != {ANY_DIRECTORY}:
            raise ConfigError(
                f"{path} names log directories of {tp}: kafka-reassign-partitions.sh moves "
                "replicas between those; here each broker chooses one"
            )
    return {tp: target.brokers for tp, target in plan.items()}


def with_factor(
    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
    brokers: Sequence[BrokerId],
    factor: int,
    apart: BrokerLocations,
) -> list[PlannedMove]:
    """Moves that change the replication factor.

    Added replicas go to brokers that share no rack or host with the others, and among these to
    those with the fewest replicas. Removed are first replicas on brokers that are down, because
    otherwise a partition could be left without a leader; then those that share a rack or host, the
    last first.
    """
    if factor > len(brokers):
        raise ConfigError(
            f"--replication-factor {factor}: the cluster has {counted(len(brokers), 'broker')}"
        )
    held = Counter(broker for each in replicas.values() for broker in each)
    moves = []
    for tp, before in sorted(replicas.items()):
        after = list(before) if factor >= len(before) else _kept(before, brokers, factor, apart)
        while len(after) < factor:
            free = [each for each in brokers if each not in after]
            added = min(free, key=lambda each: (apart.crowd(each, after), held[each], each))
            held[added] += 1
            after.append(added)
        if tuple(after) != before:
            moves.append(PlannedMove(tp, before, tuple(after)))
    return moves


def _kept(
    before: Sequence[BrokerId], live: Sequence[BrokerId], factor: int, apart: BrokerLocations
) -> list[BrokerId]:
    kept: list[BrokerId] = []
    while len(kept) < factor:
        left = [each for each in before if each not in kept]
        kept.append(min(left, key=lambda each: (each not in live, apart.crowd(each, kept))))
    return kept


def moves_of(
    targets: Mapping[TopicPartition, tuple[BrokerId, ...]],
    replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
) -> list[PlannedMove]:
    """The moves of a plan file; raises for a partition that does not exist."""
    for tp in targets:
        if tp not in replicas:
            raise ConfigError(f"{tp.topic}-{tp.partition} does not exist")
    return [
        PlannedMove(tp, replicas[tp], after)
        for tp, after in targets.items()
        if replicas[tp] != after
    ]
