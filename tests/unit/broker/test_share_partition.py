"""A share-partition: single stories that a random walk seldom tells."""

from penstock.broker.share.share_partition import (
    Acquisition,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)

LIMITS = ShareLimits(delivery_count=3, lock_ms=100)
ONE = Acquisition("a", 1, 1)


def test_a_record_on_its_last_attempt_is_not_delivered_more_often_after_a_crash() -> None:
    partition = SharePartition(0)
    for now_ms in (0, 100, 200):
        partition.expire(LIMITS, now_ms)
        partition.acquire(ONE, [FetchedBatch(0, 0)], LIMITS, now_ms)
    written = partition.begin_write()  # of the releases, while the record is delivered a third time
    assert written is not None
    another = SharePartition(written.start_offset, written.batches)
    (again,) = another.acquire(ONE, [FetchedBatch(0, 0)], LIMITS, 200)
    assert again.deliveries == LIMITS.delivery_count
