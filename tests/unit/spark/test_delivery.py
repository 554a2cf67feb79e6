"""Which batches are sent again, and the errors about those that cannot be."""

from collections.abc import Iterable
from typing import Any

import pytest

from penstock.client.errors import ConnectionFailed
from penstock.errors import ErrorCode
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.settings import ClientSettings
from penstock.spark.sink.accumulator import SealedBatch
from penstock.spark.sink.delivery import BatchResponse, NotWritten, firsts, unwritten
from penstock.spark.sink.producer import SinkProducer, batch_responses
from penstock.spark.sink.sender import REQUEST_BYTES, DeliveryTimedOut, requests
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

P0, P1 = TopicPartition("out", 0), TopicPartition("out", 1)
A0, A1, A2 = (SealedBatch(P0, b"a", sequence, 10) for sequence in (0, 10, 20))
B0 = SealedBatch(P1, b"b", 0, 3)

OK = ErrorCode.NONE
MOVED = ErrorCode.NOT_LEADER_OR_FOLLOWER
BEHIND = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
KNOWN = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(A0, OK), (A1, OK)], []),
        ([(A0, KNOWN), (B0, OK)], []),
        ([(A0, MOVED), (B0, OK)], [A0]),
        ([(A0, OK), (A1, MOVED), (A2, BEHIND)], [A1, A2]),
        ([(A0, ErrorCode.NETWORK_EXCEPTION), (A1, OK)], [A0]),
        ([(A0, ErrorCode.NOT_ENOUGH_REPLICAS), (B0, ErrorCode.CONCURRENT_TRANSACTIONS)], [A0, B0]),
    ],
)
def test_retried_batches_and_later_ones_of_their_partition_are_sent_again(
    answers: list[tuple[SealedBatch, ErrorCode]], expected: list[SealedBatch]
) -> None:
    assert unwritten(BatchResponse(batch, code) for batch, code in answers) == expected


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, "10 rows to out-0: MESSAGE_TOO_LARGE .*kafka.batch.size"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "out-0: TOPIC_AUTHORIZATION_FAILED .*WRITE"),
        (ErrorCode.INVALID_PRODUCER_EPOCH, "newer run of this query"),
        (BEHIND, "another task writes to this partition .*repartitionById"),
    ],
)
def test_a_rejection_names_partition_and_cause(code: ErrorCode, words: str) -> None:
    with pytest.raises(NotWritten, match=words):
        unwritten([BatchResponse(B0, OK), BatchResponse(A0, code)])


def test_a_retry_in_another_partition_does_not_excuse_a_rejection() -> None:
    with pytest.raises(NotWritten):
        unwritten([BatchResponse(B0, MOVED), BatchResponse(A1, BEHIND)])


def test_one_batch_per_partition_is_sent_at_a_time() -> None:
    assert firsts([A0, B0, A1, A2]) == [A0, B0]


def test_batches_are_divided_into_requests_by_size() -> None:
    large = [
        SealedBatch(TopicPartition("out", n), bytes(REQUEST_BYTES // 2), 0, 1) for n in range(5)
    ]
    assert [len(each) for each in requests(large)] == [2, 2, 1]
    alone = SealedBatch(P0, bytes(REQUEST_BYTES + 1), 0, 1)
    assert list(requests([alone, B0])) == [[alone], [B0]]
    assert list(requests([])) == []


@pytest.mark.parametrize("by_id", [False, True])
def test_responses_are_matched_to_their_batches(by_id: bool) -> None:
    said = [
        PartitionProduceResponse(index=1, error_code=MOVED, error_message="moved"),
        PartitionProduceResponse(index=0),
    ]
    topic_id = Uuid(bytes(15) + b"\1")
    topic = TopicProduceResponse(
        name="" if by_id else "out", topic_id=topic_id, partition_responses=said
    )
    found = batch_responses(ProduceResponse(responses=[topic]), [A0, B0], {topic_id: "out"})
    assert found == [BatchResponse(A0, OK, None), BatchResponse(B0, MOVED, "moved")]


def test_a_batch_missing_in_the_response_is_sent_again() -> None:
    (found,) = batch_responses(ProduceResponse(), [A0], {})
    assert unwritten([found]) == [A0]


class AwayClient(BlockingClient):
    """Loses every request to its one broker."""

    def __init__(self) -> None:
        super().__init__(ClientSettings(()))

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[BrokerId, list[TopicPartition]]:
        return {BrokerId(0): list(partitions)}

    def connection(self, to: Any) -> Any:  # noqa: ARG002
        return self

    def topic(self, name: str, *, create: bool = False) -> Any:  # noqa: ARG002
        return type("Topic", (), {"id": Uuid(bytes(16))})

    def send(self, request: Any, answer: Any) -> None:
        pass

    def receive(self, ticket: Any) -> Any:  # noqa: ARG002
        raise ConnectionFailed("the broker is away")


def test_a_delivery_timeout_fails_the_task_while_others_are_sent() -> None:
    producer = SinkProducer(AwayClient(), delivery_timeout_ms=1)
    batches = [SealedBatch(tp, b"a", sequence, 1) for sequence in range(8) for tp in (P0, P1)]
    with pytest.raises(DeliveryTimedOut, match=r"out-0 .*timeout.ms = 1 \(the broker is away\)"):
        producer.send(batches)
