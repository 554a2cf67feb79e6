"""A consumer's fetch may wait for records, and gets them directly from the file."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock.client.connection import Connection, connect
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from support.brokers.leading_broker import TOPIC, Leading, leading

Test = Callable[[Leading, Connection], Awaitable[None]]


def run(folder: Path, test: Test, partitions: int = 1) -> None:
    async def main() -> None:
        async with leading(folder, partitions) as leader, asyncio.timeout(20):
            connection = await connect(leader.address, client_id="test")
            try:
                await test(leader, connection)
            finally:
                await connection.close()

    asyncio.run(main())


def ask(
    leader: Leading, connection: Connection, *, min_bytes: int = 1, max_wait_ms: int = 60_000
) -> asyncio.Future[FetchResponse]:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=TOPIC, topic_id=leader.partition().topic_id, partitions=[part])
    request = FetchRequest(topics=[topic], min_bytes=min_bytes, max_wait_ms=max_wait_ms)
    return connection.send(request, FetchResponse)


def size_of(response: FetchResponse) -> int:
    return sum(len(p.records or b"") for each in response.responses for p in each.partitions)


@pytest.mark.row("A011", "A119")
def test_a_fetch_waits_until_there_are_enough_bytes(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        leader.append(b"a")
        log = leader.partition().log
        asked = ask(leader, connection, min_bytes=2 * log.size_bytes)
        while not len(leader.services.waiters):
            await asyncio.sleep(0)
        assert not asked.done()
        leader.append(b"b")
        assert size_of(await asked) == log.size_bytes

    run(tmp_path, test)


@pytest.mark.row("A119")
def test_a_fetch_returns_available_records_after_its_max_wait(tmp_path: Path) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        assert size_of(await ask(leader, connection, max_wait_ms=20)) == 0
        leader.append(b"a")
        found = size_of(await ask(leader, connection, min_bytes=1 << 20, max_wait_ms=20))
        assert found == leader.partition().log.size_bytes

    run(tmp_path, test)


@pytest.mark.row("A105")
def test_records_go_from_file_to_socket_by_sendfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    sendfile = os.sendfile

    def counting(out: int, file: int, offset: int, count: int) -> int:
        sent.append(sendfile(out, file, offset, count))
        return sent[-1]

    monkeypatch.setattr(os, "sendfile", counting)

    async def test(leader: Leading, connection: Connection) -> None:
        leader.append(b"x" * 200_000)
        size = size_of(await ask(leader, connection))
        assert sum(sent) == size == leader.partition().log.size_bytes

    run(tmp_path, test)


def test_few_records_are_sent_in_one_write_with_the_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unwanted(*_: int) -> int:
        raise AssertionError("sendfile costs more calls than it saves bytes")

    monkeypatch.setattr(os, "sendfile", unwanted)

    async def test(leader: Leading, connection: Connection) -> None:
        leader.append(b"x" * 60_000)
        assert size_of(await ask(leader, connection)) == leader.partition().log.size_bytes

    run(tmp_path, test)


def test_a_session_continued_by_another_connection_does_not_fail_a_waiting_fetch(
    tmp_path: Path,
) -> None:
    async def test(leader: Leading, connection: Connection) -> None:
        topic_id = leader.partition().topic_id
        parts = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(3)
        ]
        topic = FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=parts)
        opened = await connection.send(
            FetchRequest(session_epoch=0, topics=[topic], max_wait_ms=0), FetchResponse
        )
        leader.append(b"a", index=1)
        size = leader.partition(1).log.size_bytes
        request = FetchRequest(
            session_id=opened.session_id, session_epoch=1, min_bytes=2 * size, max_wait_ms=30_000
        )
        waits = connection.send(request, FetchResponse)
        while not len(leader.services.waiters):
            await asyncio.sleep(0)
        other = await connect(leader.address, client_id="other")
        forgotten = [ForgottenTopic(topic=TOPIC, topic_id=topic_id, partitions=[0, 1])]
        request = FetchRequest(
            session_id=opened.session_id,
            session_epoch=2,
            forgotten_topics_data=forgotten,
            max_wait_ms=0,
        )
        await other.call(request, FetchResponse, timeout_ms=10_000)
        for index in (2, 0, 2):
            leader.append(b"a", index=index)
            await asyncio.sleep(0.01)
        assert size_of(await waits) == 2 * size
        await other.close()

    run(tmp_path, test, partitions=3)


def test_a_fetch_does_not_wait_for_more_bytes_than_fit(tmp_path: Path) -> None:
    """Together both partitions have enough bytes, but the records of the second one do not fit."""

    async def test(leader: Leading, connection: Connection) -> None:
        leader.append(b"a" * 100, index=1)
        size = leader.partition(1).log.size_bytes
        parts = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(2)
        ]
        topic = FetchTopic(topic=TOPIC, topic_id=leader.partition().topic_id, partitions=parts)
        request = FetchRequest(
            topics=[topic], min_bytes=2 * size, max_bytes=2 * size, max_wait_ms=60_000
        )
        asked = connection.send(request, FetchResponse)
        while not len(leader.services.waiters):
            await asyncio.sleep(0)
        leader.append(b"b" * 150)
        assert size <= size_of(await asked) <= 2 * size

    run(tmp_path, test, partitions=2)
