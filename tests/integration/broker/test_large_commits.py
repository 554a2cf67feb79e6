"""Commits of very many offsets: what else happens while they take turns, wait, or are too large."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from types import coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.broker.app import running
from penstock.broker.context import Context, Peer, Services
from penstock.broker.coordination.coordinator_log import PartitionCoordinatorLog
from penstock.broker.handlers.table import HANDLERS
from penstock.broker.handling.pieces import in_pieces_each
from penstock.broker.net.dispatch import Dispatch
from penstock.broker.net.large_requests import LARGE_BYTES
from penstock.broker.net.routes import Routes
from penstock.broker.parked import Parked
from penstock.broker.translate.commits import MOST_OFFSETS
from penstock.clock import SystemClock
from penstock.config.sources import resolve
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.coordinator.transaction.coordinator import TOPIC as TRANSACTION_STATE
from penstock.errors import ErrorCode
from penstock.types import TopicPartition
from penstock.wire.apis import api_of
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decode
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.wire.messages.delete_topics import DeleteTopicsRequest
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.wire.schema import Message

ONE_COORDINATOR = ["offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1"]
GZIP = "offsets.topic.compression.codec=1"
MANY = 1500
LARGE = 16_000
PEER = Peer("PLAINTEXT", "127.0.0.1", 1)


class Caller:
    """Sends requests to a broker in the same event loop."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.routes = Routes(in_pieces_each(HANDLERS))
        self._dispatch = Dispatch(self.routes, services, SystemClock(), PEER)
        self.producer = InitProducerIdResponse()

    async def begin(self, request: Message, version: int) -> Any:
        """The reply, or the parked request that waits for it."""
        frame = request_frame(api_of(type(request)), version, 1, "test", request)
        reply: Any = self._dispatch.handle(self._dispatch.read(memoryview(frame)[4:]))
        return await reply if isinstance(reply, Coroutine) else reply

    async def ask(self, request: Message, version: int) -> Any:
        reply = await self.begin(request, version)
        if isinstance(reply, Parked):
            reply = await self.services.waiters.future(reply)
        if isinstance(reply, tuple):  # large responses are already encoded
            api = api_of(type(request))
            frame = bytes(reply[0])[4:]
            _, at = read_response_header(frame, api, version)
            reply = decode(api.response, version, frame[at:])
        return reply

    def handle(self, request: Message, version: int) -> Any:
        """The handler's coroutine; the caller runs its turns."""
        api = api_of(type(request))
        header = RequestHeader(api, version, 1, "test")
        ctx = Context(header, version, PEER, 0, self.services)
        return HANDLERS[api.key](request, ctx)

    async def create(self, name: str) -> None:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        await self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)

    def committed(self) -> dict[TopicPartition, CommittedOffset]:
        (shard,) = self.services.coordination.groups.runtime.shards()
        return dict(shard.offsets.get("g", {}))


@asynccontextmanager
async def caller(directory: Path, *settings: str) -> AsyncIterator[Caller]:
    """A broker with the topics `t` and `other`, and its coordinators."""
    resolved = resolve(
        defaults={"listeners": "PLAINTEXT://127.0.0.1:0", "log.dir": str(directory / "logs")},
        pairs=[*ONE_COORDINATOR, *settings],
        strict=True,
    )
    async with running(resolved, directory) as broker:
        one = Caller(broker.services)
        await one.create("t")
        await one.create("other")
        for kind in (0, 1):
            await one.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"]), 4)
        async with asyncio.timeout(20):
            while codes_of(await one.ask(commits(1, "other"), 9)) != {ErrorCode.NONE: 1}:
                await asyncio.sleep(0)
            while True:
                new = InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=10_000)
                one.producer = await one.ask(new, 4)
                if one.producer.error_code == ErrorCode.NONE:
                    break
                await asyncio.sleep(0)
        yield one


def commits(count: int, topic: str = "t", metadata: str = "") -> OffsetCommitRequest:
    """Commits the same partition `count` times."""
    parts = [
        OffsetCommitRequestPartition(committed_offset=7, committed_metadata=metadata)
        for _ in range(count)
    ]
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=parts)],
    )


def txn_commits(count: int, producer: InitProducerIdResponse) -> TxnOffsetCommitRequest:
    parts = [TxnOffsetCommitRequestPartition(committed_offset=7) for _ in range(count)]
    return TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=parts)],
    )


@coroutine
def rest_of(work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The result of a coroutine whose first turns already ran elsewhere."""
    return (yield from work.__await__())


def codes_of(response: Any) -> Counter[int]:
    return Counter(part.error_code for topic in response.topics for part in topic.partitions)


def without(lagging: str) -> Callable[[PartitionCoordinatorLog, int], bool]:
    """Simulates that replicas of this topic never get new records."""
    is_committed = PartitionCoordinatorLog.is_committed

    def committed(log: PartitionCoordinatorLog, end: int) -> bool:
        lags = log._partition.topic_partition.topic == lagging
        return is_committed(log, end) and (end == 0 or not lags)

    return committed


def results_of(response: Any) -> Counter[int]:
    topics = response.results_by_topic_v3_and_below
    return Counter(each.partition_error_code for one in topics for each in one.results_by_partition)


def test_a_request_that_waits_for_replicas_frees_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few large requests run at the same time: lagging replicas must not occupy all slots."""
    large = request_frame(api_of(OffsetCommitRequest), 9, 1, "test", commits(LARGE))
    assert len(large) > LARGE_BYTES

    async def main() -> None:
        async with caller(tmp_path) as one, asyncio.timeout(20):
            assert codes_of(await one.ask(txn_commits(1, one.producer), 5)) == {ErrorCode.NONE: 1}
            deleted = [OffsetDeleteRequestPartition(partition_index=0)] * MANY
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="tx",
                v3_and_below_producer_id=one.producer.producer_id,
                v3_and_below_producer_epoch=one.producer.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0] * MANY)],
            )
            cases: list[tuple[Message, int, Any, int]] = [
                (commits(MANY), 9, codes_of, MANY),
                (commits(LARGE), 9, codes_of, LARGE),
                (txn_commits(MANY, one.producer), 5, codes_of, MANY),
                (
                    OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("other", deleted)]),
                    0,
                    codes_of,
                    MANY,
                ),
                (added, 3, results_of, MANY),
            ]
            for request, version, reported, count in cases:
                lagging = TRANSACTION_STATE if request is added else CONSUMER_OFFSETS
                with monkeypatch.context() as patch:
                    patch.setattr(PartitionCoordinatorLog, "is_committed", without(lagging))
                    waiting = await one.begin(request, version)
                    assert isinstance(waiting, Parked), type(request).__name__
                    assert waiting.attempt() is None
                assert waiting.attempt() is None  # its response takes turns
                response = await one.services.waiters.future(waiting)
                assert reported(response) == {ErrorCode.NONE: count}, type(request).__name__

    asyncio.run(main())


def test_a_commit_that_waits_for_its_verification_frees_its_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with caller(tmp_path) as one, asyncio.timeout(20), asyncio.TaskGroup() as group:
            one.routes.slots.large = asyncio.Semaphore(1)
            with monkeypatch.context() as patch:
                patch.setattr(PartitionCoordinatorLog, "is_committed", without(TRANSACTION_STATE))
                waiting = group.create_task(one.ask(txn_commits(LARGE, one.producer), 5))
                await asyncio.sleep(0)
                assert one.routes.slots.large.locked()
                other = await one.ask(commits(LARGE), 9)
                assert codes_of(other) == {ErrorCode.NONE: LARGE}
                assert not waiting.done()
            one.services.waiters.changed(TopicPartition(TRANSACTION_STATE, 0))
            assert codes_of(await waiting) == {ErrorCode.NONE: LARGE}
            assert not one.routes.slots.large.locked()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("version", "code"),
    [(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (10, ErrorCode.UNKNOWN_TOPIC_ID)],
)
def test_a_topic_deleted_between_the_turns_of_a_commit_keeps_no_offsets(
    tmp_path: Path, version: int, code: ErrorCode
) -> None:
    async def main() -> None:
        async with caller(tmp_path) as one, asyncio.timeout(20):
            topics = one.services.cluster.image.topics
            named = [*commits(MANY).topics, *commits(1, "other").topics]
            by_id = [replace(each, topic_id=topics[each.name].id) for each in named]
            request = replace(commits(0), topics=by_id)
            work = one.handle(request, version)
            work.send(None)  # its first turn
            await one.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
            assert codes_of(await rest_of(work)) == {code: MANY, ErrorCode.NONE: 1}
            assert set(one.committed()) == {TopicPartition("other", 0)}

    asyncio.run(main())


def test_a_stale_commit_does_not_replace_offsets_of_a_recreated_topic(tmp_path: Path) -> None:
    async def main() -> None:
        async with caller(tmp_path) as one, asyncio.timeout(20):
            plain, transactional = (
                one.handle(commits(MANY), 9),
                one.handle(txn_commits(MANY, one.producer), 5),
            )
            for work in (plain, transactional):
                work.send(None)
            await one.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=10_000), 5)
            await one.create("t")
            assert codes_of(await one.ask(commits(1), 9)) == {ErrorCode.NONE: 1}
            for work in (plain, transactional):
                assert codes_of(await rest_of(work)) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MANY}
            kept = one.committed()[TopicPartition("t", 0)]
            assert kept.topic_id == one.services.cluster.image.topics["t"].id

    asyncio.run(main())


def test_the_uncompressed_size_of_offset_metadata_counts(tmp_path: Path) -> None:
    async def main() -> None:
        async with caller(tmp_path, GZIP) as one, asyncio.timeout(20):
            for count, length, code in [
                (1000, 4096, ErrorCode.NONE),
                (2000, 4096, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
                (2000, 4097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
            ]:
                response = await one.ask(commits(count, metadata="x" * length), 9)
                assert codes_of(response) == {code: count}

    asyncio.run(main())


def test_too_many_transactional_offsets_are_refused_like_a_consumers(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        count = MOST_OFFSETS + 1
        async with caller(tmp_path) as one, asyncio.timeout(20):
            for request, version in ((commits(count), 9), (txn_commits(count, one.producer), 5)):
                reported = codes_of(await one.ask(request, version))
                assert reported == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE: count}

    asyncio.run(main())
