"""What an operation on a group decides, as a value that the shard can keep."""

from typing import TypeAlias

import msgspec

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.rebalance_log import Rebalance
from penstock.coordinator.group.records import GroupRecord, StoredRecord, metadata_of
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Answer, Outcome
from penstock.errors import KafkaError

Refused: TypeAlias = KafkaError | None


class Kept(msgspec.Struct, frozen=True):
    """What a decision changes beside the records: a group as it now is, and its history."""

    now_ms: int
    group: ClassicGroup | ConsumerGroup | None = None
    finished: tuple[Rebalance, ...] = ()
    next_check_ms: int | None = None


Decision: TypeAlias = Outcome[StoredRecord, Kept]


def decided(turn: Turn, before: tuple[StoredRecord, ...] = ()) -> Decision:
    """What a turn of a classic group came to."""
    group = turn.group
    records = (GroupRecord(group.id, metadata_of(group)),) if turn.stored else ()
    kept = Kept(turn.now_ms, group, tuple(turn.finished))
    return Outcome((*before, *records), tuple(turn.answers), kept)


def decided_consumer(
    turn: ConsumerTurn, before: tuple[StoredRecord, ...] = (), answers: tuple[Answer, ...] = ()
) -> Decision:
    """What a turn of a group of the consumer protocol came to."""
    kept = Kept(turn.now_ms, turn.group, tuple(turn.finished))
    return Outcome((*before, *turn.records), answers, kept)
