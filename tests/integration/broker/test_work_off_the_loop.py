"""Long checks, searches and recompressions do not block the event loop."""

import asyncio
import dataclasses
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.produce import appending as produce_appending
from penstock.broker.produce.appending import GZIP_TURN_BYTES, TURN_BYTES
from penstock.client.admin import delete_topic
from penstock.client.connection import Connection, connect
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.record.validate import stored
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.testing.logs import batch_of
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.produce import (
    ProduceResponse,
)
from support.brokers.leading_broker import TOPIC, Leading, appended, code_of, produce, run


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_batch_of_very_many_records_is_checked_off_the_loop(tmp_path: Path, codec: Codec) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        may_go_on = threading.Event()
        leader.services.resources.worker.submit(may_go_on.wait, 30)

        def produced(*values: bytes) -> asyncio.Future[ProduceResponse]:
            batches = [build_batch([Record(0, 0, None, each, [])], codec=codec) for each in values]
            return produce(leader, connection, *batches, acks=1)

        sent = produced(b"a", bytes(TURN_BYTES), b"b")
        await appended(leader, 1)
        leader.append(b"from another client")
        may_go_on.set()
        answers = (await sent).responses[0].partition_responses
        assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (0, 2), (0, 3)]

        leader.partition().rules = dataclasses.replace(leader.partition().rules, keys_required=True)
        answers = (await produced(bytes(TURN_BYTES))).responses[0].partition_responses
        assert answers[0].error_code == ErrorCode.INVALID_RECORD

    run(tmp_path, test)


def slow_batch(*, sequence: int = -1) -> bytearray:
    """A batch that gzip takes too long to decompress on the loop, but that no other job delays."""
    value = b"".join(b"%d " % number for number in range(GZIP_TURN_BYTES // 2))[:GZIP_TURN_BYTES]
    return batch_of(
        value, codec=Codec.GZIP, producer_id=-1 if sequence < 0 else 7, sequence=sequence
    )


@contextmanager
def held(executor: Executor) -> Iterator[threading.Event]:
    """Keeps the single thread of an executor busy until the event is set, or the block ends."""
    may_go_on = threading.Event()
    executor.submit(may_go_on.wait, 30)
    try:
        yield may_go_on
    finally:
        may_go_on.set()


def test_a_batch_that_gzip_takes_long_for_is_checked_on_a_thread_of_its_own(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        resources = leader.services.resources
        with held(resources.worker) as of_others, held(resources.checker) as of_this:
            sent = produce(leader, connection, slow_batch(), acks=1)
            other = await connect(leader.address, client_id="test")
            assert await code_of(produce(leader, other, acks=1)) == 0
            await other.close()
            assert not sent.done()
            of_this.set()
            answer = (await sent).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, 1)
            of_others.set()

    run(tmp_path, test)


def test_batches_of_an_idempotent_producer_stay_in_order_if_the_first_is_checked_off_the_loop(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        with held(leader.services.resources.checker) as may_go_on:
            sent = [
                produce(leader, connection, slow_batch(sequence=0)),
                produce(leader, connection, batch_of(b"b", producer_id=7, sequence=1)),
                produce(leader, connection, slow_batch(sequence=0)),
                produce(leader, connection, slow_batch(sequence=2)),
            ]
            await asyncio.sleep(0.02)
            assert leader.partition().log.end_offset == 0
            may_go_on.set()
            answers = [(await each).responses[0].partition_responses[0] for each in sent]
            found = [(each.error_code, each.base_offset) for each in answers]
            assert found == [(0, 0), (0, 1), (0, 0), (0, 2)]  # the third is the first once more

    run(tmp_path, test)


def test_a_client_that_disconnects_during_the_check_leaves_its_batch(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        with held(leader.services.resources.checker) as may_go_on:
            gone = await connect(leader.address, client_id="gone")
            sent = produce(leader, gone, slow_batch(), acks=1)
            await asyncio.sleep(0.02)
            await gone.close()
            with suppress(KafkaError, asyncio.CancelledError):
                await sent
            may_go_on.set()
            await appended(leader, 1)
            assert await code_of(produce(leader, connection, acks=1)) == 0

    run(tmp_path, test)


def test_a_leader_that_resigns_during_the_check_refuses_the_batch(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        partition = leader.partition()
        with held(leader.services.resources.checker) as may_go_on:
            sent = produce(leader, connection, slow_batch(), acks=1)
            await asyncio.sleep(0.02)
            partition.follow(1, 4, (0, 1), 20)
            may_go_on.set()
            assert await code_of(sent) == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert partition.log.end_offset == 0

    run(tmp_path, test)


def test_a_topic_deleted_during_the_check_refuses_the_batch(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        log = leader.partition().log
        with held(leader.services.resources.checker) as may_go_on:
            sent = produce(leader, connection, slow_batch(), acks=1)
            await asyncio.sleep(0.02)
            await delete_topic(leader.client, TOPIC)
            may_go_on.set()
            assert await code_of(sent) in {
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.UNKNOWN_TOPIC_ID,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            }
            assert log.end_offset == 0
            assert log.log_dir.failure is None

    run(tmp_path, test)


def test_recompressing_with_gzip_does_not_block_the_loop(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        with held(leader.services.resources.checker) as may_go_on:
            plain = batch_of(random.Random(0).randbytes(GZIP_TURN_BYTES // 2))
            sent = produce(leader, connection, plain, acks=1)
            other = await connect(leader.address, client_id="test")
            assert await code_of(produce(leader, other, acks=1)) == 0
            await other.close()
            assert not sent.done()
            may_go_on.set()
            assert await code_of(sent) == 0
            batch = leader.partition().log.read(1, 1, up_to=2)
            assert batch is not None
            assert read_header(batch.read()).codec is Codec.GZIP

    run(tmp_path, test, {"compression.type": "gzip"})


@pytest.mark.parametrize(("asked", "offset"), [(15, 1), (30, 2), (31, -1), (-3, 2)])
def test_a_search_by_timestamp_does_not_block_other_requests(
    tmp_path: Path, asked: int, offset: int
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        batch = batch_of(b"a", b"b", b"c", timestamps=[10, 20, 30])
        leader.partition().append(batch, read_header(batch), 1, 0)
        may_go_on = threading.Event()
        leader.services.resources.worker.submit(may_go_on.wait, 30)
        part = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=asked)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[part])]
        )
        sent = connection.send(request, ListOffsetsResponse)
        other = await connect(leader.address, client_id="test")
        await produce(leader, other)
        await other.close()
        assert sent.done() == (asked == 31)  # then no batch has to be searched
        may_go_on.set()
        assert (await sent).topics[0].partitions[0].offset == offset

    run(tmp_path, test)


def test_other_requests_get_turns_between_batches_of_many_records(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        batch = build_batch([Record(0, 0, None, bytes(TURN_BYTES // 2), [])], codec=Codec.ZSTD)
        sent = produce(leader, connection, *[batch] * 6, acks=1)
        for end_offset in (2, 4):
            await appended(leader, end_offset)
            assert leader.partition().log.end_offset == end_offset
        answers = (await sent).responses[0].partition_responses
        assert [(each.error_code, each.base_offset) for each in answers] == [
            (0, offset) for offset in range(6)
        ]

    run(tmp_path, test)


def test_deleting_a_topic_during_a_search_by_timestamp_does_not_fail_its_disk(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        log, searched = leader.partition().log, threading.Event()
        for timestamps in (
            [500, 1],
            [600],
        ):  # 500 is gone from the first batch, so two batches are searched
            batch = batch_of(*[b"x"] * len(timestamps), timestamps=timestamps)
            leader.partition().append(batch, read_header(batch), 1, 0)
        log.maybe_increment_log_start(1)
        leader.services.resources.worker.submit(searched.wait, 30)
        part = ListOffsetsPartition(partition_index=0, timestamp=300)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[part])])
        asked = connection.send(request, ListOffsetsResponse)
        await asyncio.sleep(0.05)
        await delete_topic(leader.client, TOPIC)
        async with asyncio.timeout(10):
            while log.path.exists():
                await asyncio.sleep(0.05)
        searched.set()
        (answer,) = (await asked).topics[0].partitions
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert log.log_dir.failure is None

    run(tmp_path, test, {"log.segment.delete.delay.ms": "0"})


def test_a_batch_checked_off_the_loop_does_not_block_the_next_request_while_it_waits_for_acks(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.lead(0, 3)
        large = build_batch([Record(0, 0, None, bytes(TURN_BYTES), [])], codec=Codec.ZSTD)
        first = produce(leader, connection, large)
        second = produce(leader, connection)
        await appended(leader, 2)
        assert not first.done()
        assert not second.done()
        note_fetch(leader.partition(), FollowerFetch(1, 2))
        assert [await code_of(each) for each in (first, second)] == [0, 0]

    run(tmp_path, test)


def test_a_large_compressed_batch_is_copied_once_and_decompressed_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[tuple[bool, type]] = []

    def watched(batch: memoryview | bytearray, *args: Any, **more: Any) -> Any:
        checked.append((threading.current_thread() is threading.main_thread(), type(batch)))
        return stored(batch, *args, **more)

    monkeypatch.setattr(produce_appending, "stored", watched)

    async def test(leader: Leading, connection: Connection) -> None:
        value = random.Random(0).randbytes(TURN_BYTES + 1)
        large = build_batch([Record(0, 0, None, value, [])], codec=Codec.ZSTD)
        assert await code_of(produce(leader, connection, large, acks=1)) == 0
        assert checked == [(False, memoryview)]  # a bytearray would be another copy

    run(tmp_path, test, {"message.max.bytes": f"{2 * TURN_BYTES}"})


@pytest.mark.pure
@pytest.mark.parametrize(("level", "is_on_loop"), [("3", True), ("19", False)])
def test_recompressing_at_the_topics_level_does_not_block_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, is_on_loop: bool
) -> None:
    made: list[bool] = []

    def watched(batch: memoryview | bytearray, *args: Any, **more: Any) -> Any:
        found = stored(batch, *args, **more)
        made.append(threading.current_thread() is threading.main_thread())
        return found

    monkeypatch.setattr(produce_appending, "stored", watched)

    async def test(leader: Leading, connection: Connection) -> None:
        plain = build_batch([Record(0, 0, None, bytes(TURN_BYTES // 5), [])])
        assert await code_of(produce(leader, connection, plain, acks=1)) == 0
        assert made == [is_on_loop]

    run(tmp_path, test, {"compression.type": "zstd", "compression.zstd.level": level})


def test_a_batch_checked_off_the_loop_gets_the_time_of_its_append(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        may_go_on = threading.Event()
        leader.services.resources.worker.submit(may_go_on.wait, 30)
        large = build_batch([Record(0, 0, None, bytes(TURN_BYTES), [])], codec=Codec.ZSTD)
        sent = produce(leader, connection, large, acks=1)
        await asyncio.sleep(0.02)
        other = await connect(leader.address, client_id="test")
        earlier = await produce(leader, other)
        await other.close()
        may_go_on.set()
        appended_ms = [
            response.responses[0].partition_responses[0].log_append_time_ms
            for response in (earlier, await sent)
        ]
        assert appended_ms == sorted(appended_ms)

    run(tmp_path, test, {"log.message.timestamp.type": "LogAppendTime"})
