"""Where reading starts: offsets, timestamps, seeks, and positions outside the log."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clients.catalog import over
from clients.protocol import EARLIEST, LATEST, Client, Record, RefusedError
from penstock.errors import ErrorCode

pytestmark = pytest.mark.peer

HOUR_MS = 3_600_000
NOON_MS = 1_700_000_000_000


@pytest.fixture
def hourly(referee: Client, topic: str) -> str:
    """A topic with ten records: values 0 to 9, one for each hour after noon."""
    referee.create_topic(topic)
    for number in range(10):
        at = NOON_MS + number * HOUR_MS
        referee.produce(topic, [Record(b"%d" % number, partition=0, timestamp_ms=at)])
    return topic


@pytest.mark.row("A044")
@over()
def test_reading_starts_at_any_offset(client: Client, hourly: str) -> None:
    for offset in (0, 4, 9):
        ((read,),) = client.fetch(hourly, 0, (offset, 1))
        assert (read.offset, read.value) == (offset, b"%d" % offset)


@over()
def test_reading_starts_inside_a_batch(client: Client, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    records = [Record(b"%d" % number * 50, partition=0) for number in range(10)]
    referee.produce(topic, records, codec="lz4")
    (read,) = client.fetch(topic, 0, (7, 3))
    assert [record.offset for record in read] == [7, 8, 9]


@over("seek")
def test_a_consumer_seeks_back_and_forth(client: Client, hourly: str) -> None:
    ahead, back, last = client.fetch(hourly, 0, (5, 2), (1, 3), (9, 1))
    assert [record.offset for record in ahead] == [5, 6]
    assert [record.offset for record in back] == [1, 2, 3]
    assert [record.offset for record in last] == [9]


@over()
def test_the_earliest_and_latest_offsets_are_those_of_the_log(
    client: Client, referee: Client, hourly: str
) -> None:
    assert client.offset(hourly, 0, EARLIEST) == 0
    assert client.offset(hourly, 0, LATEST) == 10
    referee.delete_records(hourly, 0, 3)
    assert client.offset(hourly, 0, EARLIEST) == 3


@over()
def test_reading_from_the_beginning_starts_after_deleted_records(
    client: Client, referee: Client, hourly: str
) -> None:
    referee.delete_records(hourly, 0, 8)
    (read,) = client.fetch(hourly, 0, (EARLIEST, 2))
    assert [record.offset for record in read] == [8, 9]


@pytest.mark.row("A171")
@over()
def test_a_timestamp_finds_the_first_record_that_is_not_older(client: Client, hourly: str) -> None:
    assert client.offset(hourly, 0, NOON_MS - HOUR_MS) == 0
    assert client.offset(hourly, 0, NOON_MS + 4 * HOUR_MS) == 4
    assert client.offset(hourly, 0, NOON_MS + 4 * HOUR_MS + 1) == 5
    ((read,),) = client.fetch(hourly, 0, (client.offset(hourly, 0, NOON_MS + 7 * HOUR_MS), 1))
    assert read.value == b"7"


@over("time past the end")
def test_a_timestamp_after_the_last_record_finds_none(client: Client, hourly: str) -> None:
    assert client.offset(hourly, 0, NOON_MS + 9 * HOUR_MS + 1) == -1


@pytest.mark.row("A045")
@pytest.mark.parametrize("lost", [0, 500])
@over("reset")
def test_a_consumer_out_of_range_restarts_at_the_earliest_offset(
    client: Client, referee: Client, hourly: str, lost: int
) -> None:
    referee.delete_records(hourly, 0, 6)
    (read,) = client.fetch(hourly, 0, (lost, 4), reset="earliest")
    assert [record.offset for record in read] == [6, 7, 8, 9]


@pytest.mark.row("A045")
@over("reset")
def test_a_consumer_out_of_range_continues_at_the_latest_offset(
    client: Client, referee: Client, hourly: str
) -> None:
    with dripping(referee, hourly):
        ((read,),) = client.fetch(hourly, 0, (10_000, 1), reset="latest")
    assert read.offset is not None
    assert read.offset >= 10
    assert read.value == b"drip"


@pytest.mark.row("A045")
@over()
def test_a_consumer_out_of_range_without_a_policy_gets_an_error(
    client: Client, hourly: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        client.fetch(hourly, 0, (500, 1), reset="none")
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


@contextmanager
def dripping(writer: Client, topic: str) -> Iterator[None]:
    """Writes a record every 50 ms, so that a consumer at the end always gets one."""
    done = threading.Event()

    def drip() -> None:
        while not done.wait(0.05):
            writer.produce(topic, [Record(b"drip", partition=0)])

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
