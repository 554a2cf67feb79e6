"""What administrators ask of whole groups."""

from collections.abc import Iterable

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.decision import Decision
from penstock.coordinator.group.records import GroupRecord, OffsetRecord, StoredRecord
from penstock.coordinator.group.refusal import GroupIdNotFound, NonEmptyGroup
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.state import State
from penstock.coordinator.outcome import Done, Outcome, Ticket, answer


def describe(shard: GroupShard, ticket: Ticket[ClassicGroup], group: str) -> Decision:
    return Outcome(answers=(answer(ticket, shard.classic(group)),), reads=True)


def describe_consumer(shard: GroupShard, ticket: Ticket[ConsumerGroup], group: str) -> Decision:
    known = shard.consumer_groups.get(group)
    if known is None:
        why = "is not a consumer group." if group in shard.groups else "not found."
        raise GroupIdNotFound(f"Group {group} {why}")
    return Outcome(answers=(answer(ticket, known),), reads=True)


def delete(shard: GroupShard, ticket: Ticket[Done], group: str) -> Decision:
    consumer = shard.consumer_groups.get(group)
    if consumer.members if consumer else shard.classic(group).state is not State.EMPTY:
        raise NonEmptyGroup(f"{group} has members")
    records = tuple(_tombstones(shard, group))
    return Outcome(records, (answer(ticket, Done()),), may_split=True)


def _tombstones(shard: GroupShard, group: str) -> Iterable[StoredRecord]:
    """Offsets first: a group record that went alone would leave them to a simple group."""
    for where in sorted(shard.offsets_of(group)):
        yield OffsetRecord(group, *where, None)
    consumer = shard.consumer_groups.get(group)
    yield from [GroupRecord(group, None)] if consumer is None else consumer.tombstones()
