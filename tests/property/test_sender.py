"""For any order of answers, lost connections and moving leaders, each batch is written once, in
order, or the task learns that it was not.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import BrokerRefused, ConnectionFailed
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.sink.accumulator import SealedBatch
from penstock.spark.sink.delivery import BatchResponse, NotWritten
from penstock.spark.sink.sender import (
    IN_FLIGHT,
    BackOff,
    DeliveryTimedOut,
    FindLeaders,
    ReceiveResponse,
    SendBatches,
    Sender,
)
from penstock.types import BrokerId, TopicPartition

TIMEOUT_MS = 1_000
AWAY = ConnectionFailed("the broker is away")
FAULTS = ("fine", "fine", "fine", "moved", "lost", "answer lost", "half")


class Leaders:
    """Brokers that accept batches of an idempotent producer, in order of arrival.

    `faults` are the faults of successive steps; after the last one everything succeeds.
    """

    def __init__(self, faults: list[str], step_ms: float = 1) -> None:
        self.log: dict[TopicPartition, list[SealedBatch]] = defaultdict(list)
        self.faults: Iterator[str] = iter(faults)
        self.flights: list[SendBatches] = []
        self.now_ms, self.step_ms = 0.0, step_ms
        self.pauses: list[int] = []

    def run(self, sender: Sender, *, finish: bool) -> None:
        while (step := sender.step(self.now_ms, finish=finish)) is not None:
            assert sender.step(self.now_ms, finish=finish) == step, "asking changes nothing"
            self.now_ms += self.step_ms
            fault = next(self.faults, "fine")
            match step:
                case BackOff(failures):
                    self.pauses.append(failures)
                    self.now_ms += 50
                    sender.backed_off()
                case ReceiveResponse():
                    sender.received(self.answers(self.flights.pop(0), fault), self.now_ms)
                case FindLeaders() | SendBatches() if fault != "fine":
                    sender.failed(str(AWAY), self.now_ms)
                case FindLeaders(partitions):
                    at = int(self.now_ms)
                    leaders: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
                    for tp in partitions:  # whose leaders move all the time
                        leaders[BrokerId((tp.partition + at // 40) % 2)].append(tp)
                    sender.leaders_found(leaders)
                case SendBatches():
                    partitions = tuple(batch.topic_partition for batch in step.batches)
                    assert len(set(partitions)) == len(partitions)
                    self.flights.append(step)
                    busy = [each for each in self.flights if each.leader == step.leader]
                    assert len(busy) <= IN_FLIGHT
                    sender.sent()

    def answers(self, flight: SendBatches, fault: str) -> list[BatchResponse]:
        said = []
        for index, batch in enumerate(flight.batches):
            moved = fault == "moved" or (fault == "half" and index % 2)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else ErrorCode.NETWORK_EXCEPTION
            if not moved and fault != "lost":
                code = self.append(batch)
            if fault == "answer lost":
                code = ErrorCode.NETWORK_EXCEPTION
            said.append(BatchResponse(batch, code))
        return said

    def append(self, batch: SealedBatch) -> ErrorCode:
        log = self.log[batch.topic_partition]
        if batch in log[-5:]:
            return ErrorCode.NONE
        if batch.base_sequence != len(log):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        log.append(batch)
        return ErrorCode.NONE


def batches(counts: list[int]) -> list[list[SealedBatch]]:
    """`counts` has, for each call of `send`, the number of batches per partition."""
    made: list[list[SealedBatch]] = []
    sequences = [0, 0, 0]
    for count in counts:
        some = []
        for n in range(count):
            partition = n % 3
            tp = TopicPartition("out", partition)
            some.append(SealedBatch(tp, b"%d" % len(made), sequences[partition], 1))
            sequences[partition] += 1
        made.append(some)
    return made


@given(
    counts=st.lists(st.integers(0, 7), max_size=12),
    faults=st.lists(st.sampled_from(FAULTS), max_size=40),
    step_ms=st.sampled_from([1.0, 30.0, 300.0]),
)
def test_batches_are_written_once_and_in_order_or_the_task_fails(
    counts: list[int], faults: list[str], step_ms: float
) -> None:
    leaders, sender, given_batches = Leaders(faults, step_ms), Sender(TIMEOUT_MS), batches(counts)
    try:
        for some in given_batches:
            sender.add(some)
            leaders.run(sender, finish=False)
        leaders.run(sender, finish=True)
    except DeliveryTimedOut:
        assert leaders.now_ms > TIMEOUT_MS
        return
    expected: dict[TopicPartition, list[SealedBatch]] = defaultdict(list)
    for batch in (each for some in given_batches for each in some):
        expected[batch.topic_partition].append(batch)
    assert {tp: log for tp, log in leaders.log.items() if log} == expected


def test_a_broker_that_is_away_too_long_fails_the_task() -> None:
    sender, leaders = Sender(TIMEOUT_MS), Leaders(["fine", "fine", *["lost"] * 1000], 100)
    sender.add(batches([8])[0])
    with pytest.raises(DeliveryTimedOut, match=r"rows to out-0 were not written within kafka.deli"):
        leaders.run(sender, finish=True)
    assert not any(leaders.log.values())
    assert leaders.pauses == list(range(1, len(leaders.pauses) + 1)), "each waits longer"


def test_a_delivery_timeout_is_not_retriable() -> None:
    from penstock.client.errors import RETRIABLE

    assert DeliveryTimedOut("late").code not in RETRIABLE
    assert not isinstance(DeliveryTimedOut("late"), BrokerRefused)
    assert isinstance(DeliveryTimedOut("late"), KafkaError)


def test_a_rejection_ends_the_task_once_all_responses_are_received() -> None:
    sender = Sender(TIMEOUT_MS)
    (first, second, _), *_ = batches([3])
    sender.add([first])
    assert isinstance(sender.step(0), FindLeaders)
    sender.leaders_found({BrokerId(0): [first.topic_partition]})
    sender.sent()
    sender.add([second])
    assert isinstance(sender.step(0), FindLeaders)
    sender.leaders_found({BrokerId(0): [second.topic_partition]})
    sender.sent()
    sender.received([BatchResponse(first, ErrorCode.MESSAGE_TOO_LARGE)], 0)
    assert isinstance(sender.step(0), ReceiveResponse)
    sender.received([BatchResponse(second, ErrorCode.NONE)], 0)
    with pytest.raises(NotWritten, match="MESSAGE_TOO_LARGE"):
        sender.step(0)
