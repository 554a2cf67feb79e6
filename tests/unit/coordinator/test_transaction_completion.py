"""When the markers of a decided transaction are written."""

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.transaction.ending import TransactionEnd
from penstock.coordinator.transaction.initiation import TransactionInit
from penstock.coordinator.transaction.state import TransactionState
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import MemoryLog
from support.transactions.transaction_transcript import Participants, coordinator

TOPIC_PARTITION = TopicPartition("t", 0)


def test_the_producer_gets_its_response_before_the_markers_are_written() -> None:
    loop = ManualLoop()
    participants = Participants(loop)
    transactions = coordinator(MemoryLog(), loop, participants, TransactionConfig())
    loop.advance()
    producer = transactions.init("x", TransactionInit(60_000, None), 1000).reply
    assert producer is not None
    assert not isinstance(producer, Exception)
    transactions.add("x", producer, frozenset({TOPIC_PARTITION}))
    pending = transactions.end("x", TransactionEnd(producer, True, 0), -1)
    assert transactions.runtime.reply(pending) is not None
    assert participants.markers == []
    loop.advance()
    assert [topic_partition for topic_partition, _ in participants.markers] == [TOPIC_PARTITION]
    (shard,) = transactions.shards()
    assert shard.transactions["x"].state is TransactionState.COMPLETE_COMMIT
