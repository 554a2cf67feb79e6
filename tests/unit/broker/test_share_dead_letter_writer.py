"""Which dead letters of a share group are written, and when none is."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.broker.cluster import Cluster
from penstock.broker.peers.connection import PeerConnection
from penstock.broker.share import dead_letter_writer
from penstock.broker.share.dead_letter_writer import DeadLetterWriter, LetterRules, PostedLetter
from penstock.broker.share.dead_letters import ShareLetter
from penstock.broker.share.reading import is_marker, read_record
from penstock.client.errors import RequestTimedOut
from penstock.coordinator.share.state import SharePartitionKey
from penstock.errors import StorageError
from penstock.metadata.records import PartitionState
from penstock.record.record import Record
from penstock.testing.clock import ManualClock
from penstock.testing.logs import LogRig, batch_of
from penstock.types import Uuid
from penstock.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

LETTER = ShareLetter(
    key=SharePartitionKey("g", Uuid(b"t" * 16), 3),
    state_epoch=1,
    topic="orders",
    offset=3,
    deliveries=5,
    is_rejected=False,
)
MOST_BYTES = 1000


class Peer:
    """The leader of the dead-letter topic."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.indexes: list[int] = []
        self.on_call: Callable[[], None] = lambda: None

    async def call(self, request: ProduceRequest, *_: Any, **__: Any) -> ProduceResponse:
        (data,) = request.topic_data[0].partition_data
        assert isinstance(data.records, memoryview)
        self.sizes.append(len(data.records))
        self.indexes.append(data.index)
        self.on_call()
        part = PartitionProduceResponse(0)
        return ProduceResponse([TopicProduceResponse("dlq", partition_responses=[part])])

    def drop(self) -> None: ...


class FakeCluster:
    def __init__(self) -> None:
        self.image = self
        self.topics = {"dlq": SimpleNamespace(partitions=range(2))}

    def partition(self, _: object) -> PartitionState:
        return cast("PartitionState", SimpleNamespace(leader=0))

    def topic_config(self, _: str) -> object:
        return SimpleNamespace(
            errors_deadletterqueue_group_enable=True, max_message_bytes=MOST_BYTES
        )


def written(*reads: Record | Exception | None, marker: bool = False) -> list[int]:
    """The sizes of the batches written; each attempt reads the next item of `reads`."""
    peer = Peer()
    write(peer, FakeCluster(), *reads, marker=marker)
    return peer.sizes


def write(
    peer: Peer, cluster: FakeCluster, *reads: Record | Exception | None, marker: bool = False
) -> None:
    done, left = asyncio.Event(), list(reads)

    async def read() -> Record | None:
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            writer = DeadLetterWriter(
                cast("Cluster", cluster),
                ManualClock(),
                tasks,
                lambda _: cast("PeerConnection", peer),
            )
            posted = PostedLetter(
                LETTER,
                lambda: LetterRules("dlq", copies=True),
                read,
                lambda: marker,
                lambda: True,
                done.set,
            )
            writer.post([posted])
            await asyncio.wait_for(done.wait(), 30)

    asyncio.run(main())


def record(value: bytes) -> Record:
    return Record(3, 0, b"k", value, [])


def test_a_record_that_is_too_large_is_not_sent() -> None:
    """The leader would close the connection at a request beyond its limit, again and again."""
    (size,) = written(record(b"v" * MOST_BYTES))
    assert size < MOST_BYTES


def test_a_disk_failure_while_a_record_is_read_does_not_end_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dead_letter_writer, "RETRY_S", 0)
    assert len(written(StorageError("too many open files"), record(b"v"))) == 1


@pytest.mark.parametrize(("partitions", "indexes"), [(5, [1, 1]), (1, [1, 0])])
def test_a_repeated_letter_goes_to_the_partition_of_the_first_attempt(
    partitions: int, indexes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log has the letter already. Only a topic created again may lack the partition."""
    monkeypatch.setattr(dead_letter_writer, "RETRY_S", 0)
    peer, cluster = Peer(), FakeCluster()

    def lose_response() -> None:
        cluster.topics["dlq"] = SimpleNamespace(partitions=range(partitions))
        peer.on_call = lambda: None
        raise RequestTimedOut("the response is lost")

    peer.on_call = lose_response
    write(peer, cluster, record(b"v"), record(b"v"))
    assert peer.indexes == indexes


def test_a_transaction_marker_does_not_become_a_dead_letter() -> None:
    assert written(marker=True) == []


def test_markers_are_recognised() -> None:
    rig = LogRig()
    rig.append(batch_of(b"a", b"b"))
    rig.end_transaction(1, committed=True)
    assert [is_marker(rig.log, offset) for offset in range(4)] == [False, False, True, False]


def test_a_new_leader_reads_records_above_its_high_watermark() -> None:
    """The records were delivered, so they are committed; a new leader may not know that yet."""
    rig = LogRig()
    rig.append(batch_of(b"a", b"b"))
    assert rig.log.high_watermark == 0
    found = asyncio.run(read_record(rig.log, 1))
    assert found is not None
    assert found.value == b"b"
    assert asyncio.run(read_record(rig.log, 2)) is None
