"""Transactions with crashes, unreachable partitions and late requests, in any order."""

from itertools import count, pairwise

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from penstock.config.transaction import TransactionConfig
from penstock.coordinator.result import CoordinatorResult, EmptyReply, answer
from penstock.coordinator.storage import ProducerIdAndEpoch, RawRecord
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.ending import TransactionEnd
from penstock.coordinator.transaction.initiation import TransactionInit
from penstock.coordinator.transaction.records import TransactionFormat, TransactionRecord
from penstock.coordinator.transaction.state import TRANSITIONS, TransactionState
from penstock.coordinator.transaction.transaction_metadata import LAST_EPOCH, TransactionMetadata
from penstock.record.batch import batches
from penstock.record.record import records
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import MemoryLog
from support.transactions.transaction_transcript import Participants, coordinator

NAMES = ("x", "y")
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
CONFIG = TransactionConfig(transactional_id_expiration_ms=120_000)

names = st.sampled_from(NAMES)
versions = st.sampled_from([0, 2])


class TransactionMachine(RuleBasedStateMachine):
    """A decision in the log never changes, every partition gets exactly that marker, and none gets
    a marker before its decision is committed. Of several instances of an application only the
    newest is accepted, and no two of them ever have the same producer id and epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.loop, self.log, self.ids = ManualLoop(), MemoryLog(), count(1)
        self.participants = Participants(self.loop)
        self.given: dict[str, list[tuple[int, ProducerIdAndEpoch]]] = {name: [] for name in NAMES}
        """The identities given to each instance of the application."""
        self.instances = count()
        self.start()

    def start(self) -> None:
        self.transactions: TransactionCoordinator = coordinator(
            self.log, self.loop, self.participants, CONFIG
        )
        self.loop.advance()

    def holder(self, name: str, data: st.DataObject) -> tuple[int, ProducerIdAndEpoch] | None:
        """Mostly the newest instance; sometimes one that should be fenced, or that missed a
        response.
        """
        given = self.given[name]
        if not given:
            return None
        back = data.draw(st.sampled_from([1, 1, 1, 2, 3]))
        return given[-min(back, len(given))]

    @rule(name=names, data=st.data(), recovers=st.booleans())
    def init(self, name: str, data: st.DataObject, recovers: bool) -> None:
        holder = self.holder(name, data) if recovers else None
        instance, known = (next(self.instances), None) if holder is None else holder
        is_known = name in self.transactions.shards()[0].transactions
        pending = self.transactions.init(name, TransactionInit(30_000, known), next(self.ids))
        reply = self.transactions.runtime.reply(pending)
        if isinstance(reply, ProducerIdAndEpoch):
            newest = max((each for each, _ in self.given[name]), default=instance)
            assert not is_known or instance >= newest, "a fenced instance is accepted again"
            self.give(name, instance, reply)

    def give(self, name: str, instance: int, producer: ProducerIdAndEpoch) -> None:
        others = {given for each, given in self.given[name] if each != instance}
        assert producer not in others, "two instances have the same identity"
        self.given[name].append((instance, producer))

    @rule(name=names, left=st.integers(0, 3))
    def use_up_epochs(self, name: str, left: int) -> None:
        """Advance the epoch, as after many transactions of the newest instance."""
        known = self.transactions.shards()[0].transactions.get(name)
        epoch = LAST_EPOCH - 1 - left
        if known is None or not known.state.is_at_rest or known.producer_epoch >= epoch:
            return
        if not self.log.commits or (known.producer not in dict(self.given[name]).values()):
            return
        aged = replace(
            known, state=TransactionState.EMPTY, producer_epoch=epoch, last_producer_epoch=epoch - 1
        )
        self.transactions.runtime.run(
            0,
            lambda _shard, _now, pending: CoordinatorResult(
                (TransactionRecord(name, aged),), (answer(pending, EmptyReply()),)
            ),
        )
        instance = next(each for each, given in self.given[name] if given == known.producer)
        self.given[name].append((instance, aged.producer))

    @rule(name=names, topic_partition=st.sets(st.sampled_from(PARTITIONS), min_size=1), v=versions,
          data=st.data())  # fmt: skip
    def add(
        self, name: str, topic_partition: set[TopicPartition], v: int, data: st.DataObject
    ) -> None:
        holder = self.holder(name, data)
        if holder is not None:
            self.transactions.add(name, holder[1], frozenset(topic_partition), v)

    @rule(name=names, committed=st.booleans(), v=versions, data=st.data())
    def end(self, name: str, committed: bool, v: int, data: st.DataObject) -> None:
        holder = self.holder(name, data)
        if holder is None:
            return
        instance, producer = holder
        pending = self.transactions.end(
            name, TransactionEnd(producer, committed, v), next(self.ids)
        )
        reply = self.transactions.runtime.reply(pending)
        if isinstance(reply, ProducerIdAndEpoch):
            last = self.decisions(name)[-1]
            assert last.state is (
                TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT
            )
            if v >= 2:
                self.give(name, instance, reply)

    @rule(topic_partition=st.sampled_from(PARTITIONS))
    def hold_or_release(self, topic_partition: TopicPartition) -> None:
        self.participants.held ^= {topic_partition}

    @rule(seconds=st.sampled_from([0.1, 1, 40, 200]))
    def wait(self, seconds: float) -> None:
        self.loop.advance(seconds)

    @precondition(lambda self: self.log.commits)
    @rule()
    def lag(self) -> None:
        self.log.commits = False

    @precondition(lambda self: not self.log.commits)
    @rule()
    def replicate(self) -> None:
        self.log.commits = True
        self.log.commit()

    @rule()
    def crash(self) -> None:
        """Another coordinator continues from the committed records, without the old timers."""
        self.transactions.runtime.resign(0)
        self.log.lose_uncommitted()
        self.loop = ManualLoop(self.loop.now_s)  # a crash does not turn the clock back
        written, held = self.participants.markers, self.participants.held
        self.participants = Participants(self.loop)
        self.participants.markers, self.participants.held = written, held
        self.start()

    def history(self, name: str) -> list[TransactionMetadata | None]:
        """The records of one transactional id in the log, in order."""
        found = []
        for raw in self.log.batches:
            view = memoryview(raw)
            for position, header in batches(view):
                for each in records(view[position:], header, 1 << 20):
                    record = TransactionFormat().decode(RawRecord(each.key or b"", each.value))
                    if record is not None and record.transactional_id == name:
                        found.append(record.transaction)
        return found

    def decisions(self, name: str) -> list[TransactionMetadata]:
        return [each for each in self.history(name) if each is not None and each.state.is_decided]

    @invariant()
    def states_follow_the_transitions(self) -> None:
        for name in NAMES:
            before = None
            for each in self.history(name):
                if before is not None and each is not None:
                    assert each.state in TRANSITIONS[before.state]
                    assert (each.producer_id, each.producer_epoch) >= (
                        before.producer_id,
                        before.producer_epoch,
                    )
                before = each

    @invariant()
    def every_marker_was_decided(self) -> None:
        decided = {
            (
                topic_partition,
                each.producer_id,
                each.producer_epoch,
                each.state is TransactionState.PREPARE_COMMIT,
            )
            for name in NAMES
            for each in self.decisions(name)
            for topic_partition in each.partitions
        }
        for topic_partition, marker in self.participants.markers:
            written = (topic_partition, marker.producer_id, marker.producer_epoch, marker.committed)
            assert written in decided

    @invariant()
    def every_partition_of_a_complete_transaction_got_its_marker(self) -> None:
        written = {
            (topic_partition, marker.producer_id, marker.producer_epoch, marker.committed)
            for topic_partition, marker in self.participants.markers
        }
        for name in NAMES:
            history = self.history(name)
            for each, after in pairwise(history):
                if each is not None and after is not None and each.state.is_decided:
                    committed = each.state is TransactionState.PREPARE_COMMIT
                    wanted = {
                        (topic_partition, each.producer_id, each.producer_epoch, committed)
                        for topic_partition in each.partitions
                    }
                    assert wanted <= written

    def teardown(self) -> None:
        """No transaction stays open once every partition is reachable and time passes."""
        self.participants.held.clear()
        self.log.commits = True
        self.log.commit()
        self.loop.advance(100)
        for shard in self.transactions.shards():
            assert not shard.decided
            open_still = [
                t for t in shard.transactions.values() if t.state is TransactionState.ONGOING
            ]
            assert not open_still


TestTransactionMachine = TransactionMachine.TestCase
