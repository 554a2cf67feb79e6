"""How much of the shared memory the large requests of one connection hold, and for how long."""

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.broker.context import Context
from penstock.broker.net.request_memory import SLOWEST_BYTES_S, STALLED_S, RequestMemory
from penstock.broker.parked import Parked
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.one_session import connected, served

LIMIT_BYTES = 1 << 30
HALF_SENT = (LIMIT_BYTES // 2).to_bytes(4, "big") + bytes(5000)


def large_request(number: int = 1) -> bytearray:
    """100 KB: more than the initial buffer."""
    topics = [MetadataRequestTopic(name="x" * 98) for _ in range(1000)]
    return request_frame(APIS[3], 4, number, None, MetadataRequest(topics=topics))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0)


@served
async def test_memory_is_held_until_the_request_is_done_even_if_its_client_has_left() -> None:
    done, memory = asyncio.Event(), RequestMemory(LIMIT_BYTES)

    async def work(_request: Any, _ctx: Context) -> MetadataResponse:
        await done.wait()
        return MetadataResponse()

    async with connected({3: work}, LIMIT_BYTES) as client:
        client.session.limit_memory(memory)
        await client.send(large_request())
        client.sock.close()
        await client.owner.ended.wait()
        assert memory.used_bytes > 100_000
        done.set()
        await until(lambda: memory.used_bytes == 0)


@served
async def test_a_request_behind_a_waiting_one_takes_no_memory_yet() -> None:
    answers: list[MetadataResponse] = []
    memory = RequestMemory(LIMIT_BYTES)

    def wait(_request: Any, _ctx: Context) -> Parked[MetadataResponse]:
        return Parked(["key"], 60_000, lambda: answers[0] if answers else None, MetadataResponse)

    async with connected({3: wait}, LIMIT_BYTES) as client:
        client.session.limit_memory(memory)
        await client.ask(1)
        await until(lambda: bool(len(client.owner.waiters)))
        await client.send(HALF_SENT)
        await asyncio.sleep(0.05)
        assert memory.used_bytes == 0
        answers.append(MetadataResponse())
        client.owner.waiters.changed("key")
        assert (await client.answer())[0] == 1
        await until(lambda: memory.used_bytes > LIMIT_BYTES // 2)


@served
async def test_a_trickle_of_bytes_does_not_keep_the_memory() -> None:
    memory = RequestMemory(LIMIT_BYTES)
    async with connected({}, LIMIT_BYTES) as client:
        client.session.limit_memory(memory)
        now_s = asyncio.get_running_loop().time()
        assert not client.session.is_slow(now_s + 10_000)
        await client.send(HALF_SENT)
        await until(lambda: memory.used_bytes > 0)
        client.session.active_at = now_s + 10_000  # a byte arrived
        in_time_s = LIMIT_BYTES / 2 / SLOWEST_BYTES_S + STALLED_S
        assert not client.session.is_slow(now_s + in_time_s - 1)
        assert client.session.is_slow(now_s + in_time_s + 10)


@served
async def test_records_of_a_request_that_waits_for_acks_are_released() -> None:
    def wait(_request: Any, _ctx: Context) -> Parked[ProduceResponse]:
        return Parked(["key"], 60_000, lambda: None, ProduceResponse, has_acted=True)

    part = PartitionProduceData(index=0, records=bytes(3 << 20))
    topics = [TopicProduceData(name="t", partition_data=[part])]
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics)
    async with connected({0: wait}, LIMIT_BYTES) as client:
        client.session.limit_memory(RequestMemory(LIMIT_BYTES))
        await client.send(request_frame(APIS[0], 9, 1, None, request))
        await until(lambda: bool(len(client.owner.waiters)))
        assert [each.request.message for each in client.session._line.waiting] == [None]
