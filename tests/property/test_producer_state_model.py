"""However batches are lost, repeated and reordered, the log takes each of them once, in order."""

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.errors import KafkaError
from penstock.log.producer_state import ProducerState
from penstock.record.batch import BatchHeader
from penstock.types import LeaderEpoch, Offset, ProducerEpoch, ProducerId

WRAP = 1 << 31


class Producers(RuleBasedStateMachine):
    """Producers number batches on; the network repeats, holds back and drops them at will.

    The model is the list of payloads that each producer meant to write; a batch's payload is
    its ordinal number in its epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state = ProducerState()
        self.log: list[tuple[int, int, int]] = []  # producer, epoch, ordinal
        self.offsets: dict[tuple[int, int, int], int] = {}
        self.sent: dict[tuple[int, int], list[tuple[int, int]]] = {}  # base sequence, count
        self.epoch = {1: 0, 2: 0}
        self.end_offset = 0

    producers = st.sampled_from([1, 2])

    def deliver(self, producer: int, epoch: int, ordinal: int) -> None:
        base, count = self.sent[producer, epoch][ordinal]
        header = BatchHeader(
            base_offset=Offset(self.end_offset),
            batch_length=49,
            leader_epoch=LeaderEpoch(0),
            magic=2,
            crc=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=0,
            max_timestamp=0,
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(epoch),
            base_sequence=base,
            record_count=count,
        )
        key = producer, epoch, ordinal
        try:
            duplicate = self.state.check(header, from_client=True)
        except KafkaError:
            return
        if duplicate is not None:
            assert duplicate.base_offset == self.offsets[key]
            return
        self.state.append(header)
        self.log.append(key)
        self.offsets[key] = self.end_offset
        self.end_offset += count

    @rule(producer=producers, count=st.integers(1, 4), arrives=st.booleans())
    def send_next(self, producer: int, count: int, *, arrives: bool) -> None:
        epoch = self.epoch[producer]
        # The first epoch begins close to the wrap, where a fresh producer may begin too.
        batches = self.sent.setdefault((producer, epoch), [])
        base = (sum(batches[-1]) % WRAP) if batches else (WRAP - 6 if epoch == 0 else 0)
        batches.append((base, count))
        if arrives:
            self.deliver(producer, epoch, len(batches) - 1)

    @rule(producer=producers, data=st.data())
    def resend_any(self, producer: int, data: st.DataObject) -> None:
        epochs = [epoch for sender, epoch in self.sent if sender == producer]
        if epochs:
            epoch = data.draw(st.sampled_from(epochs))
            last = len(self.sent[producer, epoch]) - 1
            self.deliver(producer, epoch, data.draw(st.integers(max(0, last - 7), last)))

    @rule(producer=producers)
    def begin_epoch(self, producer: int) -> None:
        if (producer, self.epoch[producer]) in self.sent:
            self.epoch[producer] += 1

    @rule()
    def restart(self) -> None:
        self.state = ProducerState.restore(self.state.snapshot(), self.state.map_end_offset)

    @invariant()
    def each_batch_is_there_once_and_in_order(self) -> None:
        assert self.state.map_end_offset == self.end_offset
        for producer in (1, 2):
            keys = [key for key in self.log if key[0] == producer]
            assert keys == sorted(set(keys))
            for former, latter in pairwise(keys):
                if former[1] == latter[1]:
                    assert latter[2] == former[2] + 1


TestProducers = Producers.TestCase
TestProducers.settings = settings(stateful_step_count=40, deadline=None)
