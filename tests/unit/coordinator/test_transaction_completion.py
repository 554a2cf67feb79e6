"""When the markers of a decided transaction are written."""

from group_transcript import MemoryLog
from penstock.config.transaction import TransactionConfig
from penstock.coordinator.transaction.ending import Ending
from penstock.coordinator.transaction.initiation import Initiating
from penstock.coordinator.transaction.state import State
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from transaction_transcript import Participants, coordinator

WHERE = TopicPartition("t", 0)


def test_the_producer_hears_of_its_commit_before_the_markers_are_written() -> None:
    loop = ManualLoop()
    participants = Participants(loop)
    transactions = coordinator(MemoryLog(), loop, participants, TransactionConfig())
    loop.advance()
    producer = transactions.init("x", Initiating(60_000, None), 1000).reply
    assert producer is not None
    assert not isinstance(producer, Exception)
    transactions.add("x", producer, frozenset({WHERE}))
    ticket = transactions.end("x", Ending(producer, True, 0), -1)
    assert transactions.runtime.reply(ticket) is not None
    assert participants.told == []
    loop.advance()
    assert [where for where, _ in participants.told] == [WHERE]
    (shard,) = transactions.shards()
    assert shard.transactions["x"].state is State.COMPLETE_COMMIT
