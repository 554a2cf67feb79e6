"""Duplicates, the logical clock and the reorder buffer."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sdk.dedup import Dedup, RecentIds, Seen, SqliteIds
from penstock.sdk.logical_clock import CLOCK, LogicalClock, logical_time
from penstock.sdk.record import Outgoing, Record
from penstock.sdk.reorder import Released, ReorderBuffer


def record(offset: int, key: bytes = b"k", **headers: str) -> Record[bytes, bytes]:
    named = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
    return Record.make("t", 0, offset, key, b"v", named)


@pytest.mark.row("A118")
def test_ids_distinguish_records_sent_twice_from_records_read_twice() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for ids in (RecentIds(), SqliteIds(database)):
            dedup = Dedup(ids)
            assert dedup.check(record(0, id="a")) is Seen.FIRST
            assert dedup.check(record(0, id="a")) is Seen.CONSUMED_AGAIN
            assert dedup.check(record(1, id="a")) is Seen.PRODUCED_AGAIN
            assert dedup.check(record(2)) is Seen.FIRST
            assert dedup.unique([record(3, id="b"), record(4, id="b")])[0].offset == 3


def test_only_the_last_ids_are_kept_in_memory() -> None:
    dedup = Dedup(RecentIds(2))
    assert [dedup.check(record(0, id=each)).name for each in "abca"] == ["FIRST"] * 4


def test_a_record_has_a_later_time_than_its_cause() -> None:
    ours, theirs = LogicalClock("ours"), LogicalClock("theirs", count=40)
    cause = theirs.on_send(Outgoing("t", b"v"))
    read: Record[bytes, bytes] = Record.make("t", 0, 0, None, b"v", cause.headers)
    ours.on_consume([read, record(1)])
    effect = ours.on_send(Outgoing("t", b"v", headers=read.headers))
    later = logical_time(Record.make("t", 0, 1, None, b"v", effect.headers))
    first = logical_time(read)
    assert first is not None
    assert later is not None
    assert (first.ticks, later.ticks, later.node) == (41, 42, "ours")
    assert [name for name, _ in effect.headers] == [CLOCK]
    assert logical_time(record(1, penstock_clock="x:y")) is None


def test_an_impossibly_large_time_is_ignored() -> None:
    clock = LogicalClock("ours")
    clock.on_consume([record(0, penstock_clock=f"{'9' * 19}:broken")])
    sent = clock.on_send(Outgoing("t", b"v"))
    assert logical_time(Record.make("t", 0, 1, None, b"v", sent.headers)) == (1, "ours")


@pytest.mark.row("A157")
@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b"]), st.integers(0, 8)), max_size=30),
    st.integers(1, 4),
)
def test_records_leave_in_the_order_of_the_clock_unless_late(
    arrivals: list[tuple[bytes, int]], hold: int
) -> None:
    buffer = ReorderBuffer(hold, most=5)
    released: list[Released] = []
    for now_ms, (key, ticks) in enumerate(arrivals):
        released += buffer.add(record(now_ms, key, penstock_clock=f"{ticks}:n"), now_ms)
        released += buffer.due(now_ms)
    released += buffer.drain()
    assert len(released) == len(arrivals)
    assert len(buffer) == 0
    for key in (b"a", b"b"):
        times = [
            logical_time(each.record)
            for each in released
            if each.record.key == key and not each.late
        ]
        assert times == sorted(times, key=lambda each: each or (-1, ""))


def test_a_late_record_is_marked_and_one_without_a_clock_passes() -> None:
    buffer = ReorderBuffer(10)
    assert buffer.add(record(0, penstock_clock="5:n"), 0) == []
    assert buffer.add(record(1, penstock_clock="4:n"), 5) == []
    assert [each.record.offset for each in buffer.due(10)] == [1, 0]
    late = buffer.add(record(2, penstock_clock="3:n"), 11)
    assert [(each.record.offset, each.late) for each in late] == [(2, True)]
    assert [each.record.offset for each in buffer.add(record(3), 12)] == [3]


def test_the_keys_idle_for_longest_are_forgotten_first() -> None:
    buffer = ReorderBuffer(0, keys=1)
    for now_ms, key in enumerate((b"busy", b"quiet", b"busy")):
        buffer.add(record(now_ms, key, penstock_clock="5:n"), now_ms)
    assert len(list(buffer.due(9))) == 3
    assert buffer.add(record(3, b"busy", penstock_clock="4:n"), 10)[0].late
    assert not buffer.add(record(4, b"quiet", penstock_clock="4:n"), 10), "it is as good as new"
