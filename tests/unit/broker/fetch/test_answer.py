"""Which partitions an incremental response contains, and how they are grouped."""

from dataclasses import dataclass, field
from typing import cast

import pytest

from penstock.broker.fetch.answer import by_topic, has_everything, has_moved, must_be_sent
from penstock.broker.fetch.sessions import CachedPartition
from penstock.log.files import LogFile
from penstock.log.lookup import LogSlice
from penstock.log.partition_log import PartitionLog
from penstock.types import NO_UUID
from penstock.wire.messages.fetch import EpochEndOffset, PartitionData

pytestmark = pytest.mark.pure


@dataclass
class Epochs:
    latest: int = 3


@dataclass
class Log:
    """The offsets of a log."""

    log_start_offset: int = 5
    high_watermark: int = 8
    end_offset: int = 9
    epochs: Epochs = field(default_factory=Epochs)


def log(log_start_offset: int = 5, high_watermark: int = 8) -> PartitionLog:
    return cast("PartitionLog", Log(log_start_offset, high_watermark))


def cached(topic: str = "t", index: int = 0, **fields: object) -> CachedPartition:
    defaults = {
        "fetch_offset": 9,
        "max_bytes": 100,
        "leader_epoch": -1,
        "last_fetched_epoch": -1,
        "sent_high_watermark": 8,
        "sent_log_start": 5,
    }
    return CachedPartition(topic, NO_UUID, index, **{**defaults, **fields})  # type: ignore[arg-type]


def data(**fields: object) -> PartitionData:
    return PartitionData(**{"high_watermark": 8, "log_start_offset": 5, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "has"),
    [
        ({}, True),
        ({"last_fetched_epoch": 3}, True),
        ({"last_fetched_epoch": 2}, False),
        ({"fetch_offset": 8}, False),
        ({"fetch_offset": 10}, False),
    ],
)
def test_a_follower_has_everything_at_the_same_end_in_the_same_epoch(
    fields: dict[str, object], has: bool
) -> None:
    assert has_everything(log(), cached("t", 0, **fields)) is has


def test_a_log_has_moved_if_its_offsets_differ_from_those_sent() -> None:
    assert not has_moved(log(), cached())
    assert has_moved(log(high_watermark=9), cached())
    assert has_moved(log(log_start_offset=6), cached())


def test_after_an_error_the_next_response_contains_the_partition() -> None:
    assert has_moved(log(), cached(sent_error=True))
    assert must_be_sent(cached(sent_error=True), data())


@pytest.mark.parametrize(
    "fields",
    [
        {"records": LogSlice(cast("LogFile", None), 0, 1)},
        {"error_code": 1},
        {"high_watermark": 9},
        {"log_start_offset": 6},
        {"diverging_epoch": EpochEndOffset(epoch=1, end_offset=4)},
        {"preferred_read_replica": 2},
    ],
)
def test_every_change_is_sent(fields: dict[str, object]) -> None:
    assert must_be_sent(cached(), data(**fields))
    assert not must_be_sent(cached(), data())


def test_adjacent_partitions_of_one_topic_are_grouped_in_reading_order() -> None:
    read = [("a", 0), ("a", 1), ("b", 0), ("a", 2)]
    found = by_topic((cached(topic, index), data(partition_index=index)) for topic, index in read)
    assert [
        (topic.topic, [part.partition_index for part in topic.partitions]) for topic in found
    ] == [("a", [0, 1]), ("b", [0]), ("a", [2])]
