"""A share-partition on its leader: which state is written, and when."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from penstock.broker.parked import Parked
from penstock.broker.share.circuit_breaker import DeliveryRules
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.broker.share.persister import Persister
from penstock.broker.share.share_partition import (
    Acknowledgement,
    Acquisition,
    DueLetter,
    FetchedBatch,
    ShareLimits,
    SharePartition,
    StateWrite,
)
from penstock.broker.share.state_calls import ReadState, WriteState
from penstock.broker.waiters import Waiters
from penstock.coordinator.errors import CoordinatorNotAvailable
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.share.state import (
    NO_START,
    RecordState,
    ShareGroupOffset,
    SharePartitionKey,
    StateBatch,
)
from penstock.errors import ErrorCode, StorageError
from penstock.record.batch import CorruptBatch
from penstock.replication.partition import Partition
from penstock.testing.clock import ManualClock
from penstock.testing.loop import ManualLoop
from penstock.types import Uuid
from penstock.wire.enums import AcknowledgeType

KEY = SharePartitionKey("g", Uuid(b"t" * 16), 0)
EMPTY = ShareGroupOffset(snapshot_epoch=0, state_epoch=1, leader_epoch=4, start_offset=0)
UNKNOWN = msgspec.structs.replace(EMPTY)
"""Makes the state of a `Story` stay unloaded until the test answers the read."""


class FakePartition:
    """A partition that is led in epoch 4 until another broker leads."""

    def __init__(self) -> None:
        self.tenure, self.leader_epoch, self.leads = 0, 4, True
        self.log = SimpleNamespace(log_start_offset=0)

    def is_in_tenure(self, tenure: int) -> bool:
        return self.leads and tenure == self.tenure

    def follow(self) -> None:
        self.tenure, self.leader_epoch, self.leads = 1, 5, False


class FakePersister:
    """Holds calls until the test answers them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, Callable[[Any], object]]] = []

    def call(self, call: Any, then: Callable[[Any], object]) -> None:
        self.calls.append((call, then))

    def answer(self, reply: object = EmptyReply()) -> Any:
        call, then = self.calls.pop(0)
        then(reply)
        return call


class Story:
    """A share-partition of which member a has records 0 to 9."""

    def __init__(self, found: ShareGroupOffset = EMPTY) -> None:
        self.partition, self.persister = FakePartition(), FakePersister()
        self.lost: list[LedSharePartition] = []
        self.loop = loop = ManualLoop()
        self.clock, self.limits, self.rules = ManualClock(), ShareLimits(), DeliveryRules()
        self.waiters = Waiters(loop)
        self.letters: list[DueLetter] = []
        self.start: int | Exception | None = 70
        """None: the search for the start goes on until the test calls `begin`."""
        self.shared = LedSharePartition(
            KEY,
            cast("Partition", self.partition),
            lambda: self.limits,
            lambda: self.rules,
            lambda _, due: self.letters.extend(due),
            cast("Persister", self.persister),
            self.waiters,
            loop,
            self.clock,
            self.find_start,
            self.lost.append,
        )
        self.shared.load()
        if found is UNKNOWN:
            return
        assert isinstance(self.persister.answer(found), ReadState)
        if found is EMPTY:
            self.shared.acquire(Acquisition("a", 10, 10), [FetchedBatch(0, 9)])

    def find_start(self, then: Callable[[int | Exception], object]) -> None:
        self.begin = then
        if self.start is not None:
            then(self.start)

    def accept(self, first: int, last: int) -> Any:
        given = [Acknowledgement(first, last, AcknowledgeType.ACCEPT)]
        return self.shared.acknowledge("a", given)


def test_a_former_leader_writes_nothing() -> None:
    story = Story()
    story.partition.follow()  # its epoch is now that of the new leader
    story.shared.release("a")
    assert story.persister.calls == []
    assert story.lost == [story.shared]


def test_acknowledgements_queued_for_a_write_are_refused_when_another_broker_leads() -> None:
    story = Story()
    first, second = story.accept(0, 3), story.accept(4, 5)
    story.partition.follow()
    write = story.persister.answer()
    assert isinstance(write, WriteState)
    assert write.update.leader_epoch == 4
    assert first.is_done
    assert first.refused is None
    assert second.refused.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert story.persister.calls == []


def test_without_members_it_is_closed_once_everything_is_written() -> None:
    story = Story()
    first, second = story.accept(0, 3), story.accept(4, 5)
    story.shared.release("a")
    story.shared.retire()
    assert story.lost == []  # a member that joined now would load state that lacks these writes
    story.persister.answer()
    assert story.lost == []
    story.persister.answer()
    assert story.lost == [story.shared]
    assert first.is_done
    assert second.is_done


def test_a_member_that_joins_meanwhile_keeps_it_open() -> None:
    story = Story()
    story.accept(0, 3)
    story.shared.retire()
    story.shared.is_needed = True
    story.persister.answer()
    assert story.lost == []


def test_after_a_failed_write_the_state_is_loaded_again() -> None:
    story = Story()
    transition = story.accept(0, 3)
    story.persister.answer(CoordinatorNotAvailable("gone"))
    assert transition.refused.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert story.lost == [story.shared]


def test_a_failed_write_is_repeated_by_the_next_one() -> None:
    limits = ShareLimits()
    shared = SharePartition(0)
    shared.acquire(Acquisition("a", 6, 6), [FetchedBatch(0, 3)], limits, 0)
    shared.acquire(Acquisition("b", 6, 6), [FetchedBatch(4, 5)], limits, 0)
    shared.release("b")
    given = [Acknowledgement(2, 3, AcknowledgeType.ACCEPT)]
    shared.acknowledge("a", given, limits, 0)
    first = shared.begin_write()
    shared.end_write(CoordinatorNotAvailable("gone"))
    again = shared.acknowledge("a", given, limits, 0)
    second = shared.begin_write()
    assert first == second == StateWrite(0, 2, (StateBatch(2, 3, 2, 1), StateBatch(4, 5, 0, 0)))
    shared.end_write()
    assert again.is_done
    assert again.refused is None


def test_records_in_an_unknown_state_are_delivered_again() -> None:
    shared = SharePartition(0, [StateBatch(0, 1, 9, 1), StateBatch(2, 3, -4, 1)])
    wanted = Acquisition("a", 10, 10)
    acquired = shared.acquire(wanted, [FetchedBatch(0, 3)], ShareLimits(), 0)
    assert [(each.first, each.last) for each in acquired] == [(0, 1), (2, 3)]


def test_a_fetch_continues_after_aborted_records() -> None:
    story = Story()
    assert story.shared.acquire(Acquisition("b", 5, 5), [FetchedBatch(10, 99, True)]) == []
    attempts: list[None] = []
    waiting: Parked[bool] = Parked(
        [story.shared], 500, lambda: attempts.append(None), lambda: False
    )
    story.waiters.park(waiting, lambda _: None)
    story.loop.advance()
    assert attempts == [None]


def test_shortened_locks_expire_earlier() -> None:
    story = Story()
    story.limits = ShareLimits(lock_ms=1000)
    story.shared.acquire(Acquisition("b", 5, 5), [FetchedBatch(10, 14)])
    story.clock.advance(1000)
    story.loop.advance(1)
    assert story.shared.state is not None
    assert story.shared.state.fetch_offset(story.limits, story.clock.monotonic_ms()) == 10


def test_the_start_of_a_group_is_written_before_any_acknowledgement() -> None:
    """With the default, the end of the log, the next leader would start after these records."""
    story = Story(msgspec.structs.replace(EMPTY, start_offset=NO_START))
    write = story.persister.answer()
    assert isinstance(write, WriteState)
    assert write.update.start_offset == 70
    assert story.persister.calls == []


def test_an_error_in_the_search_for_the_start_is_returned_and_the_search_is_repeated() -> None:
    """The error affects only this partition; an error that rises in a task would end the broker."""
    nowhere = msgspec.structs.replace(EMPTY, start_offset=NO_START)
    for error, code in (
        (CorruptBatch("the CRC is wrong"), ErrorCode.CORRUPT_MESSAGE),
        (StorageError("the disk failed"), ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        story = Story(UNKNOWN)
        story.start = error
        story.persister.answer(nowhere)
        assert story.shared.refused is not None
        assert story.shared.refused.code == code
        assert story.lost == [story.shared]
        assert story.persister.calls == []


def test_released_records_of_an_aborted_transaction_are_not_delivered_again() -> None:
    """The group may have read uncommitted records before."""
    shared = SharePartition(0, [StateBatch(0, 9, 0, 1)])
    found = [FetchedBatch(0, 1), FetchedBatch(2, 4, True), FetchedBatch(5, 9), FetchedBatch(10, 12)]
    acquired = shared.acquire(Acquisition("a", 99, 99), found, ShareLimits(), 0)
    assert [(each.first, each.last) for each in acquired] == [(0, 1), (5, 9), (10, 12)]
    write = shared.begin_write()
    assert write is not None
    assert write.batches == (StateBatch(2, 4, 4, 1),)


def test_a_partition_closed_while_it_is_loaded_writes_no_start() -> None:
    story = Story(UNKNOWN)
    story.shared.retire()
    assert story.lost == [story.shared]
    story.persister.answer(msgspec.structs.replace(EMPTY, start_offset=NO_START))
    assert story.persister.calls == []


def test_a_start_is_written_once_the_search_for_it_has_ended() -> None:
    nowhere = msgspec.structs.replace(EMPTY, start_offset=NO_START)
    story = Story(UNKNOWN)
    story.start = None
    story.persister.answer(nowhere)
    assert story.shared.fetch_offset() is None
    story.begin(70)
    assert story.persister.answer().update.start_offset == 70
    assert story.shared.fetch_offset() == 70


def test_a_partition_closed_during_the_search_for_its_start_writes_no_start() -> None:
    nowhere = msgspec.structs.replace(EMPTY, start_offset=NO_START)
    for fate in ("no member", "lost", "another leader"):
        story = Story(UNKNOWN)
        story.start = None
        story.persister.answer(nowhere)
        match fate:
            case "no member":
                story.shared.retire()
            case "lost":
                story.shared.lose(CorruptBatch("of another request"))
            case _:
                story.partition.follow()
        story.begin(70)
        assert story.lost == [story.shared]
        assert story.persister.calls == []


def test_a_dead_letter_is_posted_once_its_record_is_stored_as_archiving() -> None:
    story = Story()
    story.limits = ShareLimits(dead_letters=True)
    story.shared.acknowledge("a", [Acknowledgement(3, 3, AcknowledgeType.REJECT)])
    assert story.letters == []
    assert story.persister.answer().update.batches == (StateBatch(3, 3, RecordState.ARCHIVING, 1),)
    assert [each.offset for each in story.letters] == [3]
    story.shared.letter_written(3)
    assert story.persister.answer().update.batches == (StateBatch(3, 3, RecordState.ARCHIVED, 1),)


def test_a_partition_with_dead_letters_to_write_stays_open_until_they_are_written() -> None:
    story = Story()
    story.limits = ShareLimits(dead_letters=True)
    story.shared.acknowledge("a", [Acknowledgement(0, 9, AcknowledgeType.REJECT)])
    story.persister.answer()
    story.shared.retire()
    assert story.lost == []
    for offset in range(10):
        story.shared.letter_written(offset)
    story.persister.answer()
    story.persister.answer()
    assert story.lost == [story.shared]


def tried() -> Story:
    """The circuit breaker is open, and member a has record 0 as its trial."""
    story = Story()
    story.rules = DeliveryRules(failures=10, pause_ms=100)
    story.shared.acknowledge("a", [Acknowledgement(0, 9, AcknowledgeType.RELEASE)])
    story.persister.answer()
    assert story.shared.fetch_offset() is None
    story.clock.advance(100)
    assert story.shared.acquire(Acquisition("a", 5, 5), [FetchedBatch(0, 9)]) == [(0, 0, 2)]
    assert story.shared.fetch_offset() is None
    return story


def test_a_trial_at_an_offset_without_a_record_is_repeated() -> None:
    """Offset 0 is a transaction marker, or was compacted away."""
    story = tried()
    story.shared.acknowledge("a", [Acknowledgement(0, 0, AcknowledgeType.GAP)])
    story.persister.answer()
    assert story.shared.fetch_offset() == 1


def test_a_trial_whose_record_was_deleted_is_repeated() -> None:
    story = tried()
    story.partition.log.log_start_offset = 5
    assert story.shared.fetch_offset() == 5


def test_acknowledgements_of_finished_records_do_not_move_the_circuit_breaker() -> None:
    """They come late, or twice: such as of records whose locks had ended, which counted then."""
    story = Story()
    story.rules = DeliveryRules(failures=10, pause_ms=100)
    story.accept(0, 4)
    story.persister.answer()
    story.shared.acknowledge("a", [Acknowledgement(0, 4, AcknowledgeType.RELEASE)])
    assert story.shared.failed_in_a_row == 0
    story.shared.acknowledge("a", [Acknowledgement(3, 6, AcknowledgeType.RELEASE)])
    assert story.shared.failed_in_a_row == 2
    story.accept(0, 4)
    assert story.shared.failed_in_a_row == 2


def test_a_disabled_circuit_breaker_holds_nothing_back() -> None:
    story = tried()
    story.rules = DeliveryRules()
    assert story.shared.fetch_offset() == 1
