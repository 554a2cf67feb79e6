"""A share-partition: single scenarios that a random walk seldom meets."""

from penstock.broker.share.share_partition import (
    Acquisition,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)

LIMITS = ShareLimits(delivery_count=3, lock_ms=100)
ONE = Acquisition("a", 1, 1)


def test_a_crash_does_not_give_a_record_more_delivery_attempts() -> None:
    partition = SharePartition(0)
    for now_ms in (0, 100, 200):
        partition.expire(LIMITS, now_ms)
        partition.acquire(ONE, [FetchedBatch(0, 0)], LIMITS, now_ms)
    written = partition.begin_write()  # the releases, while the record is delivered a third time
    assert written is not None
    another = SharePartition(written.start_offset, written.batches)
    (again,) = another.acquire(ONE, [FetchedBatch(0, 0)], LIMITS, 200)
    assert again.deliveries == LIMITS.delivery_count
