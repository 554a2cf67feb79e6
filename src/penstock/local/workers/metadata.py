"""Changes the metadata for a resize: which broker has which replica. No broker runs meanwhile."""

from collections.abc import Iterable, Mapping

import msgspec

from penstock.local.workers.layout import Resize
from penstock.metadata import paths
from penstock.metadata.reader import read_assignments
from penstock.metadata.records import (
    NO_LEADER,
    PartitionState,
    TopicAssignment,
    decode_or_skip,
    encode,
)
from penstock.metadata.store import MetadataStore, Operation, Set
from penstock.types import BrokerId, TopicPartition


async def holders(store: MetadataStore) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """The brokers of each partition's replicas, including those being added."""
    return {
        TopicPartition(topic, index): replicas
        for topic, assignment in (await _assignments(store)).items()
        for index, replicas in assignment.partitions.items()
    }


async def move_replicas(store: MetadataStore, resize: Resize) -> None:
    """Move replicas in one transaction. Repeating it changes nothing more."""
    by_partition: dict[TopicPartition, dict[BrokerId, BrokerId]] = {}
    for each in resize.moves:
        ids = by_partition.setdefault(TopicPartition(each.topic, each.partition), {})
        source, target = resize.broker_ids[each.source], resize.broker_ids[each.target]
        ids[BrokerId(source)] = BrokerId(target)
    if not by_partition:
        return
    operations: list[Operation] = []
    for topic, assignment in (await _assignments(store)).items():
        changed = _moved_assignment(topic, assignment, by_partition)
        if changed != assignment:
            operations.append(Set(paths.topic(topic), encode(changed)))
    nodes = {paths.partition_state(each): each for each in by_partition}
    for path, node in (await store.get_many(nodes)).items():
        state = decode_or_skip(PartitionState, node)
        if state is not None:
            moved = _moved_state(state, by_partition[nodes[path]])
            if moved != state:
                operations.append(Set(path, encode(moved)))
    await store.multi(operations)


async def _assignments(store: MetadataStore) -> dict[str, TopicAssignment]:
    return await read_assignments(store, await store.children(paths.TOPICS))


def _moved_assignment(
    topic: str,
    assignment: TopicAssignment,
    moves: Mapping[TopicPartition, Mapping[BrokerId, BrokerId]],
) -> TopicAssignment:
    def moved(replicas: Mapping[int, tuple[BrokerId, ...]]) -> dict[int, tuple[BrokerId, ...]]:
        return {
            index: _replaced(each, moves.get(TopicPartition(topic, index), {}))
            for index, each in replicas.items()
        }

    return msgspec.structs.replace(
        assignment,
        partitions=moved(assignment.partitions),
        adding_replicas=moved(assignment.adding_replicas),
        removing_replicas=moved(assignment.removing_replicas),
    )


def _moved_state(state: PartitionState, ids: Mapping[BrokerId, BrokerId]) -> PartitionState:
    """The state after a move. If the leader moved there is none: the controller elects it in
    a new epoch.
    """
    leader = NO_LEADER if state.leader in ids else state.leader
    return msgspec.structs.replace(state, leader=leader, isr=_replaced(state.isr, ids))


def _replaced(
    brokers: Iterable[BrokerId], ids: Mapping[BrokerId, BrokerId]
) -> tuple[BrokerId, ...]:
    return tuple(ids.get(each, each) for each in brokers)
