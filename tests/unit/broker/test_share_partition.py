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


def test_a_record_limit_is_not_divided_by_the_batch_size() -> None:
    found = [FetchedBatch(0, 1), FetchedBatch(2, 4), FetchedBatch(5, 5)]
    whole = SharePartition(0).acquire(Acquisition("a", 4, 2), found, LIMITS, 0)
    assert whole == [(0, 1, 1), (2, 4, 1)]
    strict = SharePartition(0).acquire(Acquisition("a", 4, 2, is_strict=True), found, LIMITS, 0)
    assert strict == [(0, 3, 1)]
