"""What is written for due entries."""

import pytest

from penstock.client.errors import BrokerRefused
from penstock.config.delay_route import route_of
from penstock.config.duration import MOST_MS
from penstock.errors import ErrorCode
from penstock.record.dead_letter import read_dead_letter
from penstock.record.record import Record
from penstock.retry.delivery import delivery_of, rejected
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Progress
from penstock.retry.store.index import DueKind, Entry, IndexKey
from penstock.types import Offset, TopicPartition, Uuid

NOW = 1_800_000_000_000
LATER = TopicPartition("later", 0)


def test_a_record_too_far_ahead_is_a_dead_letter_even_if_it_is_written_late() -> None:
    settings = {"penstock.delay.to": "orders", "penstock.delay.by": "timestamp"}
    route = route_of("later", settings)
    assert route is not None
    progress = Progress(Offset(0), {})
    partition = DelayPartition(LATER, IndexKey(Uuid(bytes(16)), 0), route, progress)
    record = Record(0, NOW + MOST_MS + 1, None, b"v", [])
    (entry,) = partition.read(record, NOW)
    assert entry.kind is DueKind.DEAD
    delivery = delivery_of(partition, entry, record, NOW + 60_000, same=True)
    assert delivery.is_dead
    assert delivery.record is not None
    assert delivery.record.topic == "later.dlq"


def test_the_dead_letter_of_a_retry_rejected_by_its_target_counts_earlier_attempts() -> None:
    route = route_of("again", {"penstock.retry.to": "orders"})
    assert route is not None
    again = TopicPartition("again", 0)
    progress = Progress(Offset(0), {})
    partition = DelayPartition(again, IndexKey(Uuid(bytes(16)), 0), route, progress)
    record = Record(7, NOW, b"k", b"v", [("penstock-attempt", b"2"), ("own", b"1")])
    delivery = delivery_of(partition, Entry(NOW, 7), record, NOW, same=True)
    assert delivery.record is not None
    too_large = BrokerRefused(ErrorCode.MESSAGE_TOO_LARGE, "produce")
    found = read_dead_letter(
        rejected(partition, delivery.entry, delivery.record, too_large).headers
    )
    assert found is not None
    assert (found.attempt, found.topic, found.offset) == (2, "again", 7)


@pytest.mark.parametrize(
    "schedule", [b"30 2 25-31 3 */7 Europe/Berlin", b"30 2 8-14 3 */7 America/New_York"]
)
@pytest.mark.parametrize(
    ("timestamp", "forged"),
    [
        (
            NOW,
            [
                ("penstock-schedule-start", b"0"),
                ("penstock-schedule-origin", b"3"),
                ("penstock-next-at", b"0"),
            ],
        ),
        (0, []),  # such a time existed before a clock change
    ],
)
def test_a_schedule_without_further_times_ends(
    schedule: bytes,
    timestamp: int,
    forged: list[tuple[str, bytes | None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Headers and timestamps are untrusted input: they must not end the service."""
    route = route_of("later", {"penstock.delay.to": "orders"})
    assert route is not None
    progress = Progress(Offset(0), {})
    partition = DelayPartition(LATER, IndexKey(Uuid(bytes(16)), 0), route, progress)
    record = Record(7, timestamp, b"k", b"v", [("penstock-schedule", schedule), *forged])
    entry = partition.read(record, NOW)[0]
    assert entry.kind is DueKind.SCHEDULE
    delivery = delivery_of(partition, entry, record, NOW, same=True)
    assert delivery.record is not None
    assert (delivery.record.topic, delivery.onward) == ("orders", None)
    assert "later-0 at 7: the schedule ends" in caplog.text
