"""Batched requests to other brokers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.broker.peers.log_ends import LogEndRequest, ends_request
from penstock.broker.peers.log_ends import answer_all as tell_ends
from penstock.broker.peers.outbox import Outbox
from penstock.broker.transaction.marker_outbox import RemoteMarker, markers_request
from penstock.broker.transaction.marker_outbox import answer_all as answer_markers
from penstock.broker.transaction.verification_outbox import RemoteVerification, verification_request
from penstock.broker.transaction.verification_outbox import answer_all as answer_verifications
from penstock.client.errors import ConnectionFailed
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.errors import ErrorCode
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)

OTHER = BrokerId(1)
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeLink:
    """A broker that answers when the test allows it."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.dropped = False

    async def call(self, request: Any, answer: type[Any], *, timeout_ms: int) -> Any:
        assert timeout_ms > 0
        self.requests.append(request)
        given = await self.answers.get()
        if isinstance(given, Exception):
            raise given
        assert isinstance(given, answer)
        return given

    def drop(self) -> None:
        self.dropped = True
        self.answers.put_nowait(ConnectionFailed("dropped"))


class Asked:
    def __init__(self, number: int) -> None:
        self.number = number
        self.results: list[ErrorCode | int] = []

    def failed(self, code: ErrorCode) -> None:
        self.results.append(code)


Test = Callable[[Outbox[Asked, ListOffsetsResponse], FakeLink], Awaitable[None]]


def run(test: Test) -> None:
    async def main() -> None:
        link = FakeLink()

        def request(items: list[Asked]) -> ListOffsetsRequest:
            return ListOffsetsRequest(timeout_ms=sum(each.number for each in items))

        def answered(items: list[Asked], response: ListOffsetsResponse) -> None:
            for each in items:
                each.results.append(10 // response.throttle_time_ms)

        async with asyncio.TaskGroup() as tasks:
            outbox = Outbox(tasks, lambda _: link, request, ListOffsetsResponse, answered, 1000)
            await test(outbox, link)
            outbox.close()

    asyncio.run(main())


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_items_posted_during_a_request_are_batched_into_the_next() -> None:
    async def test(outbox: Outbox[Asked, ListOffsetsResponse], link: FakeLink) -> None:
        items = [Asked(each) for each in (1, 2, 4)]
        outbox.post(OTHER, items[0])
        await turns()
        outbox.post(OTHER, items[1])
        outbox.post(OTHER, items[2])
        await turns()
        assert [each.timeout_ms for each in link.requests] == [1]
        link.answers.put_nowait(ListOffsetsResponse(throttle_time_ms=1))
        link.answers.put_nowait(ListOffsetsResponse(throttle_time_ms=2))
        await turns()
        assert [each.timeout_ms for each in link.requests] == [1, 6]
        assert [each.results for each in items] == [[10], [5], [5]]

    run(test)


def test_items_fail_if_the_broker_is_unreachable_or_its_response_is_invalid() -> None:
    async def test(outbox: Outbox[Asked, ListOffsetsResponse], link: FakeLink) -> None:
        item = Asked(1)
        for answer in (ConnectionFailed("gone"), ListOffsetsResponse(throttle_time_ms=0)):
            outbox.post(OTHER, item)
            link.answers.put_nowait(answer)
            await turns()
        outbox.post(OTHER, item)
        link.answers.put_nowait(ListOffsetsResponse(throttle_time_ms=1))
        await turns()
        failed = [ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR]
        assert item.results == [*failed, 10]

    run(test)


def test_the_outbox_does_not_wait_for_a_removed_broker() -> None:
    async def test(outbox: Outbox[Asked, ListOffsetsResponse], link: FakeLink) -> None:
        item = Asked(1)
        outbox.post(OTHER, item)
        await turns()
        outbox.keep_only({OTHER})
        assert not link.dropped
        outbox.keep_only({BrokerId(2)})
        await turns()
        assert item.results == [ErrorCode.NETWORK_EXCEPTION]

    run(test)


def test_a_closed_outbox_sends_nothing() -> None:
    async def test(outbox: Outbox[Asked, ListOffsetsResponse], link: FakeLink) -> None:
        outbox.post(OTHER, Asked(1))
        await turns()
        outbox.close()
        outbox.post(OTHER, Asked(2))
        await turns()
        assert [each.timeout_ms for each in link.requests] == [1]

    run(test)


def test_each_marker_gets_the_results_of_its_partitions() -> None:
    results: list[tuple[int, TopicPartition, int]] = []

    def remote(producer: int, *topic_partitions: TopicPartition) -> RemoteMarker:
        marker = TransactionMarker(producer, 3, committed=True, bumps_epoch=producer == 1)
        return RemoteMarker(
            marker,
            7,
            topic_partitions,
            lambda topic_partition, code: results.append((producer, topic_partition, code)),
        )

    def result(producer: int, **codes: int) -> WritableTxnMarkerResult:
        partitions = [
            WritableTxnMarkerPartitionResult(partition_index=int(at[1:]), error_code=code)
            for at, code in codes.items()
        ]
        topic = WritableTxnMarkerTopicResult(name="t", partitions=partitions)
        return WritableTxnMarkerResult(producer_id=producer, topics=[topic])

    markers = [remote(1, FIRST, SECOND), remote(2, FIRST)]
    request = markers_request(markers)
    assert [each.transaction_version for each in request.markers] == [2, 0]
    assert [each.coordinator_epoch for each in request.markers] == [7, 7]
    assert request.markers[0].topics[0].partition_indexes == [0, 1]
    answer_markers(markers, WriteTxnMarkersResponse(markers=[result(2, p0=6), result(1, p0=0)]))
    unknown = ErrorCode.UNKNOWN_SERVER_ERROR
    assert results == [(1, FIRST, 0), (1, SECOND, unknown), (2, FIRST, 6)]


def test_each_verification_gets_the_results_of_its_partitions() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        questions = [
            RemoteVerification(
                "x", ProducerIdAndEpoch(1, 0), topic_partitions, adds, loop.create_future()
            )
            for topic_partitions, adds in (((FIRST, SECOND), True), ((FIRST,), False))
        ]
        request = verification_request(questions)
        assert [each.verify_only for each in request.transactions] == [False, True]

        def result(*codes: int) -> AddPartitionsToTxnResult:
            partitions = [
                AddPartitionsToTxnPartitionResult(partition_index=at, partition_error_code=code)
                for at, code in enumerate(codes)
            ]
            topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=partitions)
            return AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])

        fenced = ErrorCode.PRODUCER_FENCED
        answer_verifications(
            questions,
            AddPartitionsToTxnResponse(results_by_transaction=[result(0, fenced), result(16)]),
        )
        first, second = [await each.answers for each in questions]
        assert first[0] is None
        assert first[1] is not None
        assert first[1].code is fenced
        assert second[0] is not None
        assert second[0].code is ErrorCode.NOT_COORDINATOR

    asyncio.run(main())


def test_log_ends_come_from_partitions_without_an_error() -> None:
    results: dict[TopicPartition, int] = {}
    question = LogEndRequest(
        (FIRST, SECOND), lambda topic_partition, end: results.update({topic_partition: end})
    )
    request = ends_request([question])
    assert [each.timestamp for each in request.topics[0].partitions] == [-1, -1]
    partitions = [
        ListOffsetsPartitionResponse(partition_index=0, offset=5),
        ListOffsetsPartitionResponse(partition_index=1, error_code=6),
    ]
    topics = [ListOffsetsTopicResponse(name="t", partitions=partitions)]
    tell_ends([question], ListOffsetsResponse(topics=topics))
    assert results == {FIRST: 5}
