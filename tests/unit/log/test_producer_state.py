"""What a partition remembers of producers: sequences, epochs, open transactions."""

from collections.abc import Callable

import pytest

from penstock.log.corrupt import CorruptFile
from penstock.log.producer_entry import BatchMetadata
from penstock.log.producer_state import (
    CompletedTxn,
    CoordinatorFenced,
    InvalidProducerEpoch,
    OutOfOrderSequence,
    ProducerState,
    WriteOutsideTransaction,
)
from penstock.record.batch import BatchHeader
from penstock.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId

PRODUCER = 1000
LAST = 2**31 - 1
TRANSACTIONAL = 0x10


def batch(
    base_sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    at: int = 0,
    producer: int = PRODUCER,
    transactional: bool = False,
    timestamp: int = 50,
) -> BatchHeader:
    """The header of a produced batch; `at` is its offset in the log."""
    return BatchHeader(
        base_offset=Offset(at),
        batch_length=49,
        leader_epoch=LeaderEpoch(0),
        magic=2,
        crc=0,
        attributes=TRANSACTIONAL if transactional else 0,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=ProducerId(producer),
        producer_epoch=ProducerEpoch(epoch),
        base_sequence=base_sequence,
        record_count=count,
    )


def write(state: ProducerState, header: BatchHeader, *, from_client: bool = True) -> None:
    assert state.check(header, from_client=from_client) is None
    state.append(header)


def end(
    state: ProducerState,
    at: int,
    *,
    committed: bool = True,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    producer: int = PRODUCER,
) -> CompletedTxn | None:
    state.check_marker(producer, epoch, coordinator_epoch)
    return state.complete_transaction(
        producer, epoch, coordinator_epoch, committed=committed, marker_offset=at, timestamp=60
    )


@pytest.fixture
def state() -> ProducerState:
    return ProducerState()


@pytest.mark.row("A108")
def test_a_retried_batch_is_answered_with_its_first_offset(state: ProducerState) -> None:
    write(state, batch(0, 3, at=40))
    found = state.check(batch(0, 3), from_client=True)
    assert found == BatchMetadata(last_sequence=2, last_offset=42, offset_delta=2, timestamp=50)
    assert found.base_offset == 40
    assert found.base_sequence == 0


def test_the_last_five_batches_are_remembered_and_an_older_one_is_out_of_order(
    state: ProducerState,
) -> None:
    for number in range(6):
        write(state, batch(number, at=number))
    for number in range(1, 6):
        found = state.check(batch(number), from_client=True)
        assert found is not None
        assert found.base_offset == number
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(0), from_client=True)


def test_a_gap_is_refused(state: ProducerState) -> None:
    write(state, batch(0, 5))
    with pytest.raises(OutOfOrderSequence, match="sent sequence 6 after 4"):
        state.check(batch(6), from_client=True)


def test_a_retry_with_another_batch_size_is_not_a_duplicate(state: ProducerState) -> None:
    write(state, batch(0, 5))
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(0, 4), from_client=True)


def test_sequences_wrap_to_zero_after_the_largest(state: ProducerState) -> None:
    write(state, batch(LAST - 1, 2, at=0))
    write(state, batch(0, 2, at=2))
    assert state.check(batch(LAST - 1, 2), from_client=True) is not None


def test_a_batch_may_span_the_wrap(state: ProducerState) -> None:
    write(state, batch(LAST, 3, at=0))
    found = state.check(batch(LAST, 3), from_client=True)
    assert found is not None
    assert (found.base_sequence, found.last_sequence) == (LAST, 1)
    write(state, batch(2, at=3))


def test_an_unknown_producer_may_start_at_any_sequence(state: ProducerState) -> None:
    write(state, batch(17))


def test_an_older_epoch_is_fenced(state: ProducerState) -> None:
    write(state, batch(0, epoch=3))
    with pytest.raises(InvalidProducerEpoch, match="has epoch 2, and epoch 3"):
        state.check(batch(1, epoch=2), from_client=True)


def test_a_new_epoch_begins_at_sequence_zero(state: ProducerState) -> None:
    write(state, batch(0, 5, epoch=3))
    with pytest.raises(OutOfOrderSequence, match="began epoch 4 with sequence 5"):
        state.check(batch(5, epoch=4), from_client=True)
    write(state, batch(0, epoch=4, at=5))
    write(state, batch(1, epoch=4, at=6))


def test_a_new_epoch_forgets_the_batches_of_the_old_one(state: ProducerState) -> None:
    write(state, batch(0, 5, epoch=3))
    write(state, batch(0, 1, epoch=4, at=5))
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(0, 5, epoch=4), from_client=True)


def test_appends_of_the_coordinator_are_fenced_by_epoch_but_have_no_sequences(
    state: ProducerState,
) -> None:
    write(state, batch(-1, epoch=3, transactional=True), from_client=False)
    write(state, batch(-1, epoch=3, at=1, transactional=True), from_client=False)
    with pytest.raises(InvalidProducerEpoch):
        state.check(batch(-1, epoch=2, transactional=True), from_client=False)


def test_a_batch_without_a_producer_only_advances_the_end(state: ProducerState) -> None:
    state.append(batch(-1, 4, at=10, producer=-1, epoch=-1))
    assert state.map_end_offset == 14
    assert state.producers == {}


def test_an_open_transaction_holds_the_last_stable_offset(state: ProducerState) -> None:
    write(state, batch(0, at=5, transactional=True))
    write(state, batch(1, at=6, transactional=True))
    assert state.first_unstable_offset == 5
    assert end(state, 7) == CompletedTxn(PRODUCER, 5, 7, True, 8)
    assert state.map_end_offset == 8
    # Committed here, but not on enough replicas yet.
    assert state.first_unstable_offset == 5
    state.replicated_to(7)
    assert state.first_unstable_offset == 5
    state.replicated_to(8)
    assert state.first_unstable_offset is None


def test_the_first_of_several_open_transactions_counts(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True, producer=1))
    write(state, batch(0, at=1, transactional=True, producer=2))
    write(state, batch(0, at=2, transactional=True, producer=3))
    assert end(state, 3, producer=2, committed=False) == CompletedTxn(2, 1, 3, False, 0)
    assert end(state, 4, producer=1) == CompletedTxn(1, 0, 4, True, 2)
    state.replicated_to(5)
    assert state.first_unstable_offset == 2


def test_the_first_of_several_ended_transactions_counts_until_it_is_replicated(
    state: ProducerState,
) -> None:
    for at, producer in ((0, 7), (1, 8), (2, 9)):
        state.append(batch(0, at=at, producer=producer, transactional=True))
    for at, producer in ((3, 8), (4, 7), (5, 9)):  # the second one ends within the first
        state.complete_transaction(producer, 0, 0, committed=True, marker_offset=at, timestamp=50)
    stable = []
    for high_watermark in (3, 4, 5, 6):
        state.replicated_to(high_watermark)
        stable.append(state.first_unstable_offset)
    assert stable == [0, 0, 2, None]


def test_very_many_transactions_are_replayed(state: ProducerState) -> None:
    """Looking at all ended ones for each would take longer than a test may."""
    for at in range(0, 160_000, 2):
        state.append(batch(0, at=at, transactional=True))
        state.complete_transaction(
            PRODUCER, 0, 0, committed=True, marker_offset=at + 1, timestamp=50
        )
    assert state.first_unstable_offset == 0
    state.replicated_to(160_000)
    assert state.first_unstable_offset is None


def test_a_marker_without_a_transaction_completes_none(state: ProducerState) -> None:
    assert end(state, 0) is None
    assert state.producers[PRODUCER].producer_epoch == 0
    assert state.first_unstable_offset is None


def test_a_late_marker_does_not_end_the_next_transaction(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True, epoch=4))
    state.check_next_epoch(PRODUCER, 5)
    with pytest.raises(InvalidProducerEpoch):
        state.check_next_epoch(PRODUCER, 4)
    end(state, 1, epoch=5)
    state.check_next_epoch(PRODUCER, 5)  # a retry after a lost answer
    write(state, batch(0, at=2, transactional=True, epoch=5))
    with pytest.raises(InvalidProducerEpoch):
        state.check_next_epoch(PRODUCER, 5)
    state.check_next_epoch(PRODUCER + 1, 0)  # unknown here


def test_the_last_epoch_has_no_successor(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True, epoch=2**15 - 1))
    state.check_next_epoch(PRODUCER, 2**15 - 1)


def test_sequences_continue_after_the_markers_of_one_epoch(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True))
    end(state, 1)
    write(state, batch(1, at=2, transactional=True))
    assert state.check(batch(0, transactional=True), from_client=True) is not None


def test_a_marker_with_a_new_epoch_fences_and_resets_the_sequence(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True))
    end(state, 1, committed=False, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        state.check(batch(1, transactional=True), from_client=True)
    with pytest.raises(OutOfOrderSequence):
        state.check(batch(1, epoch=1, transactional=True), from_client=True)
    write(state, batch(0, epoch=1, at=2, transactional=True))


def test_markers_of_fenced_producers_and_coordinators_are_refused(state: ProducerState) -> None:
    write(state, batch(0, epoch=2, transactional=True))
    with pytest.raises(InvalidProducerEpoch):
        state.check_marker(PRODUCER, 1, 0)
    end(state, 1, epoch=2, coordinator_epoch=5)
    with pytest.raises(CoordinatorFenced):
        state.check_marker(PRODUCER, 2, 4)
    state.check_marker(PRODUCER, 2, 5)


def test_writing_outside_of_an_open_transaction_is_refused(state: ProducerState) -> None:
    write(state, batch(0, at=0, transactional=True))
    with pytest.raises(WriteOutsideTransaction):
        state.check(batch(1), from_client=True)


def test_silent_producers_expire_unless_a_transaction_is_open(state: ProducerState) -> None:
    write(state, batch(0, producer=1, timestamp=100))
    write(state, batch(0, producer=2, timestamp=101))
    write(state, batch(0, producer=3, timestamp=0, transactional=True))
    state.expire(now_ms=200, expiration_ms=100)
    assert set(state.producers) == {2, 3}
    # Its next sequence is accepted although the producer has expired.
    write(state, batch(9, producer=1))


def test_a_moved_log_start_keeps_producers_and_frees_completed_transactions(
    state: ProducerState,
) -> None:
    write(state, batch(0, at=0, transactional=True))
    end(state, 1)
    state.truncate_before(10)
    assert state.first_unstable_offset is None
    assert state.map_end_offset == 10
    assert PRODUCER in state.producers


def test_a_snapshot_has_kafkas_bytes(state: ProducerState) -> None:
    write(state, batch(4, 3, at=10, transactional=True, epoch=2, timestamp=77))
    assert state.snapshot() == bytes.fromhex(
        "0001" + "bfa1ef00" + "00000001"
        "00000000000003e8" + "0002" + "00000006" + "000000000000000c" + "00000002"
        "000000000000004d" + "ffffffff" + "000000000000000a"
    )  # fmt: skip


def test_a_snapshot_restores_producers_and_open_transactions(state: ProducerState) -> None:
    write(state, batch(0, at=0, producer=1, transactional=True))
    write(state, batch(0, 2, at=1, producer=2))
    write(state, batch(0, at=3, producer=3, transactional=True))
    end(state, 4, producer=3, epoch=1, coordinator_epoch=9)
    back = ProducerState.restore(state.snapshot(), map_end_offset=5)
    assert back.producers == state.producers
    assert back.first_unstable_offset == 0
    assert back.map_end_offset == 5
    with pytest.raises(CoordinatorFenced):
        back.check_marker(3, 1, 8)
    assert end(back, 5, producer=1) == CompletedTxn(1, 0, 5, True, 6)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:3],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"\0\2" + data[2:],
        lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    ],
)
def test_a_damaged_snapshot_is_refused(
    state: ProducerState, damage: Callable[[bytes], bytes]
) -> None:
    write(state, batch(0))
    with pytest.raises(CorruptFile):
        ProducerState.restore(damage(state.snapshot()), map_end_offset=1)
