"""The reader of a range over a scripted broker: neither errors nor a slow reader lose a record."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from penstock.client.errors import BrokerRefused, ConnectionFailed
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import assign
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.spark.decode.columns import RecordBounds
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import VisibleBatches
from penstock.spark.source.data_loss import DataLoss
from penstock.spark.source.fetch import READ_AHEAD, FetchedBytes, RangeFetch, ReadTimedOut
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.read_ahead import ahead
from penstock.spark.source.settings import FetchSettings
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

ROWS = 10
ANSWERS = 6
MOVED = BrokerRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
LOST = ConnectionFailed("lost")
EMPTY = None
RANGE = OffsetRange(TopicPartition("t", 0), 0, ANSWERS * ROWS)
FORMER, ANEW = Uuid(b"1" * 16), Uuid(b"2" * 16)
ROWS_OF_A_BATCH = [Record(i, 1, None, b"x", []) for i in range(ROWS)]


def batch_at(offset: int) -> bytes:
    made = bytearray(build_batch(ROWS_OF_A_BATCH))
    assign(made, offset, 0)
    return bytes(made)


class ScriptedClient(BlockingClient):
    """A broker that answers each fetch with a batch, after the scripted failures.

    `asks` are failures to send a request, `answers` are received instead of an answer.
    """

    def __init__(self, asks: dict[int, KafkaError], answers: dict[int, KafkaError | None]) -> None:
        super().__init__(ClientSettings((), timeout_ms=5_000))
        self._asks, self._answers = asks, answers
        self.sent = self.received = 0
        self.topic_id = FORMER

    def connection(self, to: Any) -> Any:  # noqa: ARG002
        return self

    def topic(self, name: str, *, create: bool = False) -> Any:  # noqa: ARG002
        part = type("Part", (), {"leader_epoch": 0})
        return type("Topic", (), {"id": self.topic_id, "partitions": {0: part}})

    def send(self, request: Any, answer: Any) -> int:  # noqa: ARG002
        self.sent += 1
        if self.sent in self._asks:
            raise self._asks[self.sent]
        return int(request.topics[0].partitions[0].fetch_offset)

    def receive(self, ticket: int, *, timeout_ms: int, into: memoryview) -> FetchResponse:  # noqa: ARG002
        self.received += 1
        # Any answer is written into the buffer, as a socket does.
        data = batch_at(ticket)
        into[: len(data)] = data
        records: memoryview | bytes = into[: len(data)]
        if self.received in self._answers:
            failure = self._answers[self.received]
            into[: len(data)] = bytes(len(data))
            if failure is not None:
                raise failure
            records = b""
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic="t", partitions=[PartitionData(partition_index=0, records=records)]
                )
            ]
        )


def offsets(fetched: FetchedBytes) -> list[int]:
    decoder = VectorisedDecoder(RecordBounds(first=fetched.start), with_headers=False)
    batches = VisibleBatches(decoder.wanted, fetched.aborted, check_crcs=True, scratch=None)
    found = decoder.decode(fetched.records, batches, plain=True)
    return [offset for each in found for offset in each.offset.to_pylist()]


SMALL = FetchSettings(partition_bytes=1000, max_wait_ms=0)


@pytest.mark.parametrize("failure", [MOVED, LOST, EMPTY], ids=["refused", "lost", "empty"])
@pytest.mark.parametrize("at", range(1, ANSWERS + 1))
def test_a_failed_attempt_overwrites_no_buffer_that_is_still_read(
    failure: KafkaError | None, at: int
) -> None:
    client = ScriptedClient({}, {at: failure})
    fetch = RangeFetch(client, RANGE, SMALL, fail=True)
    found: list[int] = []
    held: list[FetchedBytes] = []
    for fetched in fetch:
        held.append(fetched)
        if len(held) == READ_AHEAD + 1:  # as slowly as the queue between them allows
            found += offsets(held[0])
            held.pop(0).done()
    for fetched in held:
        found += offsets(fetched)
    assert found == list(range(RANGE.end))


@pytest.mark.parametrize("at", range(1, ANSWERS + 1))
def test_a_response_is_not_lost_when_the_next_request_fails(at: int) -> None:
    client = ScriptedClient({at: LOST}, {})
    found: list[int] = []
    for fetched in RangeFetch(client, RANGE, SMALL, fail=True):
        found += offsets(fetched)
        fetched.done()
    assert found == list(range(RANGE.end))


def test_the_fetching_thread_waits_for_a_reader_and_ends_with_it() -> None:
    client = ScriptedClient({}, {})
    fetch = RangeFetch(client, RANGE, SMALL, fail=True)
    waited = threading.Event()
    waiting = fetch._changed.wait

    def noticed(timeout: float | None = None) -> bool:
        waited.set()
        return waiting(timeout)

    fetch._changed.wait = noticed  # type: ignore[method-assign]
    used: Iterator[FetchedBytes] = ahead(iter(fetch), 4 * ANSWERS, fetch.close)
    first = next(used)
    assert waited.wait(30), "three answers are not returned"
    assert offsets(first) == list(range(ROWS))
    used.close()  # type: ignore[attr-defined]  # a generator
    assert "penstock-fetch" not in {thread.name for thread in threading.enumerate()}


def test_a_read_without_records_times_out_and_is_not_retried() -> None:
    client = ScriptedClient({}, dict.fromkeys(range(1, 10_000)))
    object.__setattr__(client.settings, "timeout_ms", 0)
    with pytest.raises(ReadTimedOut, match=r"no record from offset 0 within kafka.default.api"):
        list(RangeFetch(client, RANGE, SMALL, fail=True))
    assert client.received == 1


class RemadeTopic(ScriptedClient):
    """Answers twice; then the topic is another one of the same name."""

    def receive(self, ticket: int, *, timeout_ms: int, into: memoryview) -> FetchResponse:
        if self.received == 2:
            self.received, self.topic_id = 3, ANEW
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_ID, "fetch")
        return super().receive(ticket, timeout_ms=timeout_ms, into=into)


def read_by(client: ScriptedClient, wanted: OffsetRange = RANGE, *, fail: bool) -> Iterator[int]:
    for fetched in RangeFetch(client, wanted, SMALL, fail=fail):
        yield from offsets(fetched)
        fetched.done()


def test_a_recreated_topic_is_not_read_in_place_of_the_former_one() -> None:
    with pytest.raises(DataLoss, match="its topic was recreated"):
        list(read_by(RemadeTopic({}, {}), fail=True))
    assert list(read_by(RemadeTopic({}, {}), fail=False)) == list(range(2 * ROWS))


def test_a_task_reads_only_the_topic_that_it_was_planned_for() -> None:
    planned = replace(RANGE, topic_id=ANEW)
    with pytest.raises(DataLoss, match="its topic was recreated"):
        list(read_by(ScriptedClient({}, {}), planned, fail=True))
    assert list(read_by(ScriptedClient({}, {}), planned, fail=False)) == []
    own = replace(RANGE, topic_id=FORMER)
    assert list(read_by(ScriptedClient({}, {}), own, fail=True)) == list(range(RANGE.end))


class DeletedTopic(ScriptedClient):
    """Answers twice; then the topic is unknown, for so many requests."""

    def __init__(self, unknown: int) -> None:
        super().__init__({}, {})
        self._unknown = unknown

    def topic(self, name: str, *, create: bool = False) -> Any:
        if self.received == 2 and self._unknown:
            self._unknown -= 1
            raise BrokerRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        return super().topic(name, create=create)


def test_the_rest_of_a_deleted_topic_is_an_error_or_left_out() -> None:
    with pytest.raises(BrokerRefused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(read_by(DeletedTopic(99), fail=True))
    deleted = DeletedTopic(99)
    object.__setattr__(deleted.settings, "timeout_ms", 0)
    assert list(read_by(deleted, fail=False)) == list(range(2 * ROWS))


def test_a_topic_that_a_broker_does_not_know_yet_is_not_left_out() -> None:
    assert list(read_by(DeletedTopic(2), fail=False)) == list(range(RANGE.end))


class OverQuota(ScriptedClient):
    """Sends every other response without partitions: the client is over its quota, and waits."""

    def receive(self, ticket: int, *, timeout_ms: int, into: memoryview) -> FetchResponse:
        found = super().receive(ticket, timeout_ms=timeout_ms, into=into)
        return FetchResponse(throttle_time_ms=1) if self.received % 2 else found


def test_a_client_over_its_quota_gets_its_records_later() -> None:
    assert list(read_by(OverQuota({}, {}), fail=True)) == list(range(RANGE.end))


class InRack(ScriptedClient):
    """A leader that sends consumers of its rack to a follower, broker 2, which answers so often
    and then has no more, or fails.
    """

    def __init__(self, *, follows: int, then: KafkaError | ErrorCode | None) -> None:
        super().__init__({}, {})
        self._follows, self._then = follows, then
        self._to: Any = None
        self.of_follower = 0

    def connection(self, to: Any) -> Any:
        self._to = to
        return self

    def send(self, request: Any, answer: Any) -> Any:
        reads_follower = isinstance(self._to, ToBroker)
        return reads_follower, bool(request.rack_id), super().send(request, answer)

    def receive(self, ticket: Any, *, timeout_ms: int, into: memoryview) -> FetchResponse:
        reads_follower, has_rack, offset = ticket
        if reads_follower and self.of_follower < self._follows:
            self.of_follower += 1
        elif reads_follower and isinstance(self._then, KafkaError):
            raise self._then
        elif reads_follower or has_rack:
            fails = reads_follower and isinstance(self._then, ErrorCode)
            data = PartitionData(
                partition_index=0,
                error_code=ErrorCode.OFFSET_OUT_OF_RANGE if fails else ErrorCode.NONE,
                preferred_read_replica=-1 if reads_follower else 2,
                records=b"",
            )
            topic = FetchableTopicResponse(topic="t", partitions=[data])
            return FetchResponse(responses=[topic])
        return super().receive(offset, timeout_ms=timeout_ms, into=into)


@pytest.mark.parametrize("follows", [0, 2, ANSWERS])
@pytest.mark.parametrize("then", [None, LOST, MOVED, ErrorCode.OFFSET_OUT_OF_RANGE])
def test_a_follower_in_the_rack_is_read_as_far_as_it_can(
    follows: int, then: KafkaError | ErrorCode | None
) -> None:
    client = InRack(follows=follows, then=then)
    found: list[int] = []
    for fetched in RangeFetch(client, RANGE, replace(SMALL, rack="a"), fail=True):
        found += offsets(fetched)
        fetched.done()
    assert found == list(range(RANGE.end))
    assert client.of_follower == follows
