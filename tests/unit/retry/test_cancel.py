"""Whether a cancellation or the delivery came first, from what the service writes."""

import pytest

from penstock.retry.cancel import CancelOrder, CancelOutcome, CancelWatch
from penstock.retry.progress import CHUNK, Outcome, Progress, StateKey
from penstock.retry.state_topic import state_records
from penstock.retry.store.index import IndexKey
from penstock.types import Offset, Uuid

DELIVERED, CANCELLED = Outcome.DELIVERED, Outcome.CANCELLED
KEY = IndexKey(Uuid(bytes(15) + b"7"), 0)
OTHER = IndexKey(Uuid(bytes(15) + b"8"), 0)


def progress(read_to: int, *waiting: int) -> Progress:
    made = Progress(Offset(0), {})
    for each in waiting:
        made.waits(each)
    made.read(Offset(read_to))
    return made


def committed(
    watch: CancelWatch, made: Progress, done: dict[int, Outcome], key: IndexKey = KEY
) -> None:
    """Feed the state records of a transaction that completes these records."""
    for offset, outcome in done.items():
        made.stage(offset, outcome)
    for each in state_records(key, made):
        assert each.key is not None
        watch.feed(StateKey.decode(each.key), each.value)
    made.commit()


def test_a_cancelled_record_is_reported_as_cancelled() -> None:
    watch, made = CancelWatch([CancelOrder(KEY, 1, 5)]), progress(6, 0, 1, 5)
    committed(watch, made, {0: DELIVERED})
    assert watch.outcomes == {}
    committed(watch, made, {1: CANCELLED, 5: DELIVERED})
    assert watch.outcomes == {CancelOrder(KEY, 1, 5): CancelOutcome.CANCELLED}
    assert watch.is_done


def test_a_record_delivered_before_its_cancellation_is_reported_as_delivered() -> None:
    watch, made = CancelWatch([CancelOrder(KEY, 1, 5)]), progress(6, 0, 1, 5)
    committed(watch, made, {1: DELIVERED})
    assert watch.outcomes == {CancelOrder(KEY, 1, 5): CancelOutcome.DELIVERED}


def test_an_order_for_a_record_completed_long_ago_is_reported_as_delivered() -> None:
    """The record's chunk was forgotten long ago."""
    watch = CancelWatch([CancelOrder(KEY, 1, 2 * CHUNK)])
    made = Progress(Offset(CHUNK), {})
    made.waits(2 * CHUNK)
    made.waits(2 * CHUNK + 1)
    made.read(Offset(2 * CHUNK + 2))
    committed(watch, made, {2 * CHUNK: DELIVERED})
    assert watch.outcomes == {CancelOrder(KEY, 1, 2 * CHUNK): CancelOutcome.DELIVERED}


@pytest.mark.parametrize("in_two", [False, True])
def test_a_cancellation_that_completes_its_chunk_is_still_seen(in_two: bool) -> None:
    """The floor then passes the chunk, whose bitmaps are removed in the same transaction."""
    order = CancelOrder(KEY, 1, CHUNK)
    watch, made = CancelWatch([order]), progress(CHUNK + 1, 1, 2, CHUNK)
    if in_two:
        committed(watch, made, {2: DELIVERED})
        committed(watch, made, {1: CANCELLED, CHUNK: DELIVERED})
    else:
        committed(watch, made, {1: CANCELLED, 2: DELIVERED, CHUNK: DELIVERED})
    assert watch.outcomes == {order: CancelOutcome.CANCELLED}


def test_other_partitions_are_ignored() -> None:
    watch, made = CancelWatch([CancelOrder(KEY, 1, 5)]), progress(6, 0, 1, 5)
    committed(watch, made, {1: CANCELLED, 5: DELIVERED}, OTHER)
    assert not watch.is_done
