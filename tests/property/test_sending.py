"""Any order of answers, lost connections and moving leaders: each batch is written once, in order,
or the task is told that it was not.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.errors import BrokerRefused, ConnectionFailed
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.sink.batching import Sealed
from penstock.spark.sink.delivery import Answered, NotWritten
from penstock.spark.sink.sending import (
    IN_FLIGHT,
    DeliveryTimedOut,
    Pause,
    Receive,
    Route,
    Send,
    Sending,
)
from penstock.types import BrokerId, TopicPartition

TIMEOUT_MS = 1_000
AWAY = ConnectionFailed("the broker is away")
FAULTS = ("fine", "fine", "fine", "moved", "lost", "answer lost", "half")


class Leaders:
    """Brokers that take batches of an idempotent producer, in the order in which they arrive.

    `faults` says what befalls one step after the other; behind its end all goes well.
    """

    def __init__(self, faults: list[str], step_ms: float = 1) -> None:
        self.log: dict[TopicPartition, list[Sealed]] = defaultdict(list)
        self.faults: Iterator[str] = iter(faults)
        self.flights: list[Send] = []
        self.now_ms, self.step_ms = 0.0, step_ms
        self.pauses: list[int] = []

    def run(self, sending: Sending, *, finish: bool) -> None:
        while (step := sending.step(self.now_ms, finish=finish)) is not None:
            assert sending.step(self.now_ms, finish=finish) == step, "asking changes nothing"
            self.now_ms += self.step_ms
            fault = next(self.faults, "fine")
            match step:
                case Pause(failures):
                    self.pauses.append(failures)
                    self.now_ms += 50
                    sending.paused()
                case Receive():
                    sending.heard(self.answers(self.flights.pop(0), fault), self.now_ms)
                case Route() | Send() if fault != "fine":
                    sending.put_off(str(AWAY), self.now_ms)
                case Route(places):
                    at = int(self.now_ms)
                    leaders: dict[BrokerId, list[TopicPartition]] = defaultdict(list)
                    for place in places:  # which move all the time
                        leaders[BrokerId((place.partition + at // 40) % 2)].append(place)
                    sending.routed(leaders)
                case Send():
                    places = tuple(batch.place for batch in step.batches)
                    assert len(set(places)) == len(places)
                    self.flights.append(step)
                    busy = [each for each in self.flights if each.leader == step.leader]
                    assert len(busy) <= IN_FLIGHT
                    sending.sent()

    def answers(self, flight: Send, fault: str) -> list[Answered]:
        said = []
        for index, batch in enumerate(flight.batches):
            moved = fault == "moved" or (fault == "half" and index % 2)
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if moved else ErrorCode.NETWORK_EXCEPTION
            if not moved and fault != "lost":
                code = self.append(batch)
            if fault == "answer lost":
                code = ErrorCode.NETWORK_EXCEPTION
            said.append(Answered(batch, code))
        return said

    def append(self, batch: Sealed) -> ErrorCode:
        log = self.log[batch.place]
        if batch in log[-5:]:
            return ErrorCode.NONE
        if batch.base_sequence != len(log):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        log.append(batch)
        return ErrorCode.NONE


def batches(counts: list[int]) -> list[list[Sealed]]:
    """For each call of `send` so many batches of each partition."""
    made: list[list[Sealed]] = []
    sequences = [0, 0, 0]
    for count in counts:
        some = []
        for n in range(count):
            partition = n % 3
            place = TopicPartition("out", partition)
            some.append(Sealed(place, b"%d" % len(made), sequences[partition], 1))
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
    leaders, sending, given_batches = Leaders(faults, step_ms), Sending(TIMEOUT_MS), batches(counts)
    try:
        for some in given_batches:
            sending.add(some)
            leaders.run(sending, finish=False)
        leaders.run(sending, finish=True)
    except DeliveryTimedOut:
        assert leaders.now_ms > TIMEOUT_MS
        return
    expected: dict[TopicPartition, list[Sealed]] = defaultdict(list)
    for batch in (each for some in given_batches for each in some):
        expected[batch.place].append(batch)
    assert {place: log for place, log in leaders.log.items() if log} == expected


def test_a_broker_that_stays_away_too_long_fails_the_task() -> None:
    sending, leaders = Sending(TIMEOUT_MS), Leaders(["fine", "fine", *["lost"] * 1000], 100)
    sending.add(batches([8])[0])
    with pytest.raises(DeliveryTimedOut, match=r"rows to out-0 were not written within kafka.deli"):
        leaders.run(sending, finish=True)
    assert not any(leaders.log.values())
    assert leaders.pauses == list(range(1, len(leaders.pauses) + 1)), "each waits longer"


def test_a_time_out_is_none_of_the_errors_that_are_tried_again() -> None:
    from penstock.client.errors import RETRIABLE

    assert DeliveryTimedOut("late").code not in RETRIABLE
    assert not isinstance(DeliveryTimedOut("late"), BrokerRefused)
    assert isinstance(DeliveryTimedOut("late"), KafkaError)


def test_a_refusal_ends_the_task_when_all_is_heard() -> None:
    sending = Sending(TIMEOUT_MS)
    (first, second, _), *_ = batches([3])
    sending.add([first])
    assert isinstance(sending.step(0), Route)
    sending.routed({BrokerId(0): [first.place]})
    sending.sent()
    sending.add([second])
    assert isinstance(sending.step(0), Route)
    sending.routed({BrokerId(0): [second.place]})
    sending.sent()
    sending.heard([Answered(first, ErrorCode.MESSAGE_TOO_LARGE)], 0)
    assert isinstance(sending.step(0), Receive)
    sending.heard([Answered(second, ErrorCode.NONE)], 0)
    with pytest.raises(NotWritten, match="MESSAGE_TOO_LARGE"):
        sending.step(0)
