"""Which records are read again at a time."""

from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.retry.positions import EMPTY_TIMES, Reread
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import PartitionData


def test_headers_count_for_the_size_too() -> None:
    part = Reread(TopicPartition("later", 0), Uuid(bytes(16)), [0, 1, 2], limit_bytes=1000)
    batch = build_batch(
        Record(n, 1, None, b"v", [("h", bytes(600)), ("null", None)]) for n in range(3)
    )
    part.take(PartitionData(records=bytes(batch)))
    assert (sorted(part.found), part.wanted, part.is_done) == ([0, 1], [2], True)


def test_a_batch_that_is_cut_is_asked_for_again_with_more_bytes() -> None:
    """Others of the response come first, however long they take."""
    part = Reread(TopicPartition("later", 0), Uuid(bytes(16)), [0], limit_bytes=1000)
    whole = bytes(build_batch([Record(0, 1, None, bytes(3 << 20), [])]))
    for _ in range(EMPTY_TIMES):
        part.take(PartitionData(records=whole[: 1 << 20]))
    while not part.is_done:
        part.take(PartitionData(records=whole[: part.fetch_bytes]))
    assert part.found.keys() == {0}
