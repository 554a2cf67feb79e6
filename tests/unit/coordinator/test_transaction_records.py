"""Records of `__transaction_state` at each level of `transaction.version`."""

import pytest

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.records import TransactionFormat, TransactionRecord
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import MemoryLog
from support.transactions.transaction_transcript import Participants, coordinator

OPEN = TransactionMetadata(
    producer_id=7,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset({TopicPartition("t", 1)}),
    start_ms=5,
    updated_ms=6,
)


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_a_value_has_the_version_that_brokers_at_the_feature_level_can_read(
    level: int, version: int
) -> None:
    stored = TransactionFormat(lambda: level)
    record = TransactionRecord("x", OPEN)
    raw = stored.encode(record)
    assert raw.value is not None
    assert raw.value[:2] == version.to_bytes(2)
    assert stored.decode(raw) == record


def test_a_record_that_is_part_of_a_transaction_is_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients could once write such records."""
    loop, log = ManualLoop(), MemoryLog()
    record = TransactionRecord(
        "x", TransactionMetadata(producer_id=1, producer_epoch=0, timeout_ms=1)
    )
    log.append([TransactionFormat().encode(record)], 0, ProducerIdAndEpoch(9, 0))
    transactions = coordinator(log, loop, Participants(loop), TransactionConfig())
    loop.advance()
    (shard,) = transactions.shards()
    assert shard.transactions == {}
    assert transactions.runtime.unreadable_records == 1
    assert "skipping the record at offset 0" in caplog.text
