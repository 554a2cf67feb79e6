"""Which records are read again together."""

from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.retry.positions import EMPTY_TIMES, Reread
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import PartitionData


def test_headers_count_towards_the_size() -> None:
    part = Reread(TopicPartition("later", 0), Uuid(bytes(16)), [0, 1, 2], limit_bytes=1000)
    batch = build_batch(
        Record(n, 1, None, b"v", [("h", bytes(600)), ("null", None)]) for n in range(3)
    )
    part.take(PartitionData(records=bytes(batch)))
    assert (sorted(part.found), part.wanted, part.is_done) == ([0, 1], [2], True)


def test_a_truncated_batch_is_requested_again_with_more_bytes() -> None:
    """Other partitions of the response may take all its bytes for a while."""
    part = Reread(TopicPartition("later", 0), Uuid(bytes(16)), [0], limit_bytes=1000)
    whole = bytes(build_batch([Record(0, 1, None, bytes(3 << 20), [])]))
    for _ in range(EMPTY_TIMES):
        part.take(PartitionData(records=whole[: 1 << 20]))
    while not part.is_done:
        part.take(PartitionData(records=whole[: part.fetch_bytes]))
    assert part.found.keys() == {0}
