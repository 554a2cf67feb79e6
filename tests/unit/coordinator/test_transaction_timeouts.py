"""Timeouts of transactions, by a wall clock that may be set back."""

import pytest

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.result import Now
from penstock.coordinator.transaction.records import TransactionRecord
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.types import TopicPartition

STARTED_MS = 10_000_000
DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("wall_ms", "ends"),
    [
        (STARTED_MS + 59_999, False),
        (STARTED_MS + 60_000, True),
        (STARTED_MS - 59_999, False),
        (STARTED_MS - DAY_MS, True),
    ],
)
def test_a_transaction_times_out_even_if_the_wall_clock_was_set_back(
    wall_ms: int, *, ends: bool
) -> None:
    shard = TransactionShard(TransactionConfig())
    started = TransactionMetadata(
        producer_id=7,
        producer_epoch=3,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        partitions=frozenset({TopicPartition("t", 1)}),
        start_ms=STARTED_MS,
        updated_ms=STARTED_MS,
    )
    shard.replay(TransactionRecord("x", started))
    assert bool(shard.expire(Now(wall_ms, steady_ms=0)).records) is ends
