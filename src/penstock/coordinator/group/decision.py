"""What an operation on a group decides, as a value that the shard can keep."""

from typing import TypeAlias

import msgspec

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.consumer.group import ConsumerGroup
from penstock.coordinator.group.consumer.member import ConsumerMember
from penstock.coordinator.group.consumer.turn import ConsumerTurn
from penstock.coordinator.group.member import Member
from penstock.coordinator.group.rebalance_log import Rebalance
from penstock.coordinator.group.records import GroupRecord, StoredRecord, metadata_of
from penstock.coordinator.group.state import State
from penstock.coordinator.group.turn import Turn
from penstock.coordinator.outcome import Answer, Now, Outcome
from penstock.errors import KafkaError

Refused: TypeAlias = KafkaError | None


class Kept(msgspec.Struct, frozen=True):
    """What a decision changes beside the records: a group as it now is, and its history."""

    now_ms: int
    group: ClassicGroup | ConsumerGroup | None = None
    finished: tuple[Rebalance, ...] = ()
    next_check_ms: int | None = None
    only_heard: bool = False
    """A member was heard of and nothing else: no deadline has come nearer."""


Decision: TypeAlias = Outcome[StoredRecord, Kept]


def decided(turn: Turn, before: tuple[StoredRecord, ...] = ()) -> Decision:
    """What a turn of a classic group came to."""
    group = turn.group
    records = (GroupRecord(group.id, metadata_of(group)),) if turn.stored else ()
    kept = Kept(turn.now_ms, group, tuple(turn.finished), only_heard=turn.only_heard)
    return Outcome((*before, *records), tuple(turn.answers), kept)


def heard(group: ClassicGroup, member: Member, now_ms: int) -> Kept:
    """What is kept when a member is heard of and nothing else happens, as mostly."""
    return Kept(now_ms, group.heard(member, now_ms), only_heard=True)


def heard_consumer(group: ConsumerGroup, member: ConsumerMember, now: Now) -> Kept:
    members = {**group.members, member.id: member}
    return Kept(now.steady_ms, msgspec.structs.replace(group, members=members), only_heard=True)


def decided_consumer(
    turn: ConsumerTurn, before: tuple[StoredRecord, ...] = (), answers: tuple[Answer, ...] = ()
) -> Decision:
    """What a turn of a group of the consumer protocol came to.

    `before` takes a classic group of the same name away, and its history with it: that is kept.
    """
    if turn.downgraded is not None:
        return _downgraded(turn, turn.downgraded, answers)
    finished = (*turn.history, *turn.finished) if before else tuple(turn.finished)
    kept = Kept(turn.now_ms, turn.group, finished)
    return Outcome((*before, *turn.records), answers, kept)


def _downgraded(turn: ConsumerTurn, classic: Turn, answers: tuple[Answer, ...]) -> Decision:
    """All that was of the one group goes, and the other is written in the same batch."""
    group = classic.group
    stored = msgspec.structs.replace(group, state=State.STABLE)
    if group.state is not State.STABLE:
        # The members are to share out anew. If a crash comes first, the generation of nobody makes
        # them join again; else what the last one had would stay with nobody.
        stored = msgspec.structs.replace(stored, generation=group.generation + 2)
    records: list[StoredRecord] = [*turn.before.tombstones()]
    records.append(GroupRecord(group.id, metadata_of(stored)))
    kept = Kept(turn.now_ms, group, (*turn.history, *turn.finished))
    return Outcome(tuple(records), (*answers, *classic.answers), kept)
