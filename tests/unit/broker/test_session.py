"""One connection over a real socket pair: order, waiting, back-pressure, and its end."""

import asyncio
import socket
from collections.abc import Coroutine
from time import perf_counter_ns
from typing import Any

from penstock.broker.context import AnyHandler, Context
from penstock.broker.net.session import (
    READ_AHEAD_BYTES,
    REQUESTS_A_TURN,
    SEND_BYTES,
    TURN_NS,
)
from penstock.broker.parked import Parked
from penstock.broker.quotas.rate import LONGEST_MS
from penstock.coordinator.errors import NotCoordinator
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import Configs
from penstock.wire.apis import APIS
from penstock.wire.client_frame import request_frame
from penstock.wire.codec import decode
from penstock.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.one_session import connected, served


def at_once(_request: Any, ctx: Context) -> MetadataResponse:
    return MetadataResponse(controller_id=ctx.header.correlation_id)


@served
async def test_pipelined_requests_are_answered_in_order() -> None:
    async with connected({3: at_once}) as client:
        for number in range(200):
            await client.ask(number)
        assert [(await client.answer())[0] for _ in range(200)] == list(range(200))


@served
async def test_a_waiting_request_blocks_later_ones() -> None:
    ready: list[MetadataResponse] = []

    def wait_for_first(_request: Any, ctx: Context) -> MetadataResponse | Parked[MetadataResponse]:
        if ctx.header.correlation_id > 0:
            return MetadataResponse()
        return Parked(["key"], 60_000, lambda: ready[0] if ready else None, MetadataResponse)

    async with connected({3: wait_for_first}) as client:
        for number in range(3):
            await client.ask(number)
        await asyncio.sleep(0)
        while not client.session.is_busy:
            await asyncio.sleep(0)
        ready.append(MetadataResponse())
        client.owner.waiters.changed("key")
        assert [(await client.answer())[0] for _ in range(3)] == [0, 1, 2]


@served
async def test_a_request_that_gives_way_is_answered_when_the_next_one_arrives() -> None:
    def wait(_request: Any, ctx: Context) -> MetadataResponse | Parked[MetadataResponse]:
        if ctx.header.correlation_id % 2:
            return MetadataResponse()
        return Parked(["key"], 60_000, lambda: None, MetadataResponse, gives_way=True)

    async with connected({3: wait}) as client:
        await client.ask(0)
        while not len(client.owner.waiters):
            await asyncio.sleep(0)
        for number in range(1, 4):  # 1 comes during a wait; 3 comes with 2, which waits
            await client.ask(number)
        assert [(await client.answer())[0] for _ in range(4)] == [0, 1, 2, 3]
        assert len(client.owner.waiters) == 0


@served
async def test_half_a_request_ends_no_wait_and_a_malformed_one_closes_the_connection() -> None:
    def wait(_request: Any, _ctx: Context) -> Parked[MetadataResponse]:
        return Parked(["key"], 60_000, lambda: None, MetadataResponse, gives_way=True)

    async with connected({3: wait}, max_frame_bytes=100) as client:
        await client.ask(0)
        await client.send(b"\0\0")
        while not len(client.owner.waiters):
            await asyncio.sleep(0)
        assert client.session.is_busy
        await client.send(b"\0\x65")
        assert await client.answer() == (-1, b"")


@served
async def test_a_bad_frame_behind_a_request_that_waits_ends_the_connection() -> None:
    def wait(_request: Any, _ctx: Context) -> Parked[MetadataResponse]:
        return Parked(["key"], 60_000, lambda: None, MetadataResponse)

    async with connected({3: wait}) as client:
        await client.ask(0)
        await client.send(b"\xff\xff\xff\xff")
        while not len(client.owner.waiters):
            await asyncio.sleep(0)
        await client.send(b"GET /")
        await client.owner.ended.wait()
        assert len(client.owner.waiters) == 0


@served
async def test_produce_requests_wait_for_their_replicas_concurrently() -> None:
    replicated, handled = set[int](), list[int]()

    def produce(_request: Any, ctx: Context) -> ProduceResponse | Parked[ProduceResponse]:
        number = ctx.header.correlation_id
        handled.append(number)
        if number == 3:
            return ProduceResponse()  # e.g. refused; still answered after the earlier ones

        def attempt() -> ProduceResponse | None:
            return ProduceResponse() if number in replicated else None

        return Parked([number], 60_000, attempt, ProduceResponse, has_acted=True)

    def metadata(_request: Any, ctx: Context) -> MetadataResponse:
        handled.append(ctx.header.correlation_id)
        return MetadataResponse()

    async with connected({0: produce, 3: metadata}) as client:
        for number in range(4):
            request = ProduceRequest(acks=-1)
            await client.send(request_frame(APIS[0], 9, number, None, request))
        await client.ask(4)
        while len(handled) < 4:
            await asyncio.sleep(0)
        for number in (1, 0, 2):
            assert handled == [0, 1, 2, 3]  # requests of other APIs wait for earlier ones
            replicated.add(number)
            client.owner.waiters.changed(number)
            await asyncio.sleep(0)
        assert [(await client.answer())[0] for _ in range(5)] == [0, 1, 2, 3, 4]
        assert handled == [0, 1, 2, 3, 4]
        assert not client.session.is_busy


@served
async def test_a_closed_connection_leaves_no_produce_request_waiting() -> None:
    def produce(_request: Any, _ctx: Context) -> Parked[ProduceResponse]:
        return Parked(["key"], 60_000, lambda: None, ProduceResponse, has_acted=True)

    async with connected({0: produce}) as client:
        for number in range(3):
            request = ProduceRequest(acks=-1)
            await client.send(request_frame(APIS[0], 9, number, None, request))
        while len(client.owner.waiters) < 3:
            await asyncio.sleep(0)
        client.session.close("by the test")
        assert len(client.owner.waiters) == 0


@served
async def test_a_coroutine_request_of_a_client_that_left_does_not_start_to_wait() -> None:
    async with connected({3: at_once}) as client:
        client.session.close("gone")
        client.session.carry_out(Parked(["key"], 60_000, lambda: None, MetadataResponse))
        assert len(client.owner.waiters) == 0


@served
async def test_a_coroutine_request_is_answered_before_the_next() -> None:
    async def later(_request: Any, ctx: Context) -> MetadataResponse:
        for _ in range(5 - ctx.header.correlation_id):
            await asyncio.sleep(0)
        return MetadataResponse()

    async with connected({3: later}) as client:
        for number in range(4):
            await client.ask(number)
        assert [(await client.answer())[0] for _ in range(4)] == [0, 1, 2, 3]


@served
async def test_requests_without_a_response_send_nothing() -> None:
    def silent_on_odd(_request: Any, ctx: Context) -> MetadataResponse | None:
        return None if ctx.header.correlation_id % 2 else MetadataResponse()

    async with connected({3: silent_on_odd}) as client:
        for number in range(4):
            await client.ask(number)
        assert [(await client.answer())[0] for _ in range(2)] == [0, 2]


@served
async def test_the_session_stops_reading_from_a_client_that_does_not_read() -> None:
    handled = 0

    def large(_request: Any, _ctx: Context) -> MetadataResponse:
        nonlocal handled
        handled += 1
        return MetadataResponse(cluster_id="x" * 30_000)

    async with connected({3: large}) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        for number in range(200):
            await client.ask(number)
        await asyncio.sleep(0)
        assert handled < 200
        assert [(await client.answer())[0] for _ in range(200)] == list(range(200))
        assert handled == 200


@served
async def test_pipelined_requests_of_a_client_that_does_not_read_are_not_all_answered() -> None:
    handled, response_bytes = 0, 30_000

    def large(_request: Any, _ctx: Context) -> MetadataResponse:
        nonlocal handled
        handled += 1
        return MetadataResponse(cluster_id="x" * response_bytes)

    def grow_the_buffer(_request: Any, _ctx: Context) -> None:
        return None

    async with connected({0: grow_the_buffer, 3: large}) as client:
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        records = [PartitionProduceData(records=memoryview(bytes(900_000)))]
        request = ProduceRequest(topic_data=[TopicProduceData(partition_data=records)])
        await client.send(request_frame(APIS[0], 9, 0, None, request))
        for number in range(300):
            await client.ask(number)
        while not handled:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        in_the_sockets = 1 << 19
        assert handled * response_bytes < SEND_BYTES + in_the_sockets
        assert [(await client.answer())[0] for _ in range(300)] == list(range(300))


@served
async def test_a_client_with_many_requests_yields_to_others() -> None:
    handled = 0

    def small(_request: Any, _ctx: Context) -> MetadataResponse:
        nonlocal handled
        handled += 1
        return MetadataResponse()

    async with connected({3: small}) as client:
        frame = request_frame(APIS[3], 4, 1, None, MetadataRequest(topics=[]))
        client.sock.send(bytes(frame) * 150)  # they fit into one read
        while not handled:
            await asyncio.sleep(0)
        assert handled <= REQUESTS_A_TURN  # fewer if they take long
        assert [(await client.answer())[0] for _ in range(150)] == [1] * 150


@served
async def test_slow_pipelined_requests_yield_sooner() -> None:
    handled = 0

    def slow(_request: Any, _ctx: Context) -> MetadataResponse:
        nonlocal handled
        handled += 1
        until_ns = perf_counter_ns() + TURN_NS
        while perf_counter_ns() < until_ns:
            pass
        return MetadataResponse()

    async with connected({3: slow}) as client:
        frame = request_frame(APIS[3], 4, 1, None, MetadataRequest(topics=[]))
        client.sock.send(bytes(frame) * 5)
        while not handled:
            await asyncio.sleep(0)
        assert handled == 2
        assert [(await client.answer())[0] for _ in range(5)] == [1] * 5


@served
async def test_a_client_that_keeps_sending_gets_no_more_turns() -> None:
    handled = 0

    def small(_request: Any, _ctx: Context) -> None:
        nonlocal handled
        handled += 1

    async with connected({3: small}) as client:
        frame = request_frame(APIS[3], 4, 1, None, MetadataRequest(topics=[]))
        most = 0
        for _ in range(20):
            client.sock.send(bytes(frame) * (2 * REQUESTS_A_TURN))
            before = handled
            await asyncio.sleep(0)  # one turn of the loop
            most = max(most, handled - before)
        assert 0 < most <= 2 * REQUESTS_A_TURN  # a turn that was due, and one for new requests


@served
async def test_read_ahead_of_a_waiting_request_is_bounded() -> None:
    def never(_request: Any, _ctx: Context) -> Parked[MetadataResponse]:
        return Parked([], 60_000, lambda: None, MetadataResponse)

    async with connected({3: never}) as client:
        sent = 0
        loop = asyncio.get_running_loop()
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        frame = bytes(request_frame(APIS[3], 4, 1, "x" * 1000, MetadataRequest()))
        try:
            async with asyncio.timeout(0.3):
                while True:
                    await loop.sock_sendall(client.sock, frame)
                    sent += len(frame)
        except TimeoutError:
            pass
        assert sent < READ_AHEAD_BYTES + (1 << 20)


@served
async def test_a_malformed_request_closes_the_connection() -> None:
    async with connected({3: at_once}) as client:
        await client.send(b"\0\0\0\x0a" + b"\xff" * 10)
        assert await client.answer() == (-1, b"")
        assert client.owner.ended.is_set()


@served
async def test_an_unsupported_version_closes_the_connection() -> None:
    async with connected({3: at_once}) as client:
        frame = request_frame(APIS[3], 4, 1, None, MetadataRequest())
        frame[6:8] = (99).to_bytes(2, "big")
        await client.send(frame)
        assert await client.answer() == (-1, b"")


@served
async def test_a_frame_over_the_limit_closes_the_connection() -> None:
    async with connected({3: at_once}, max_frame_bytes=100) as client:
        await client.send((101).to_bytes(4, "big"))
        assert await client.answer() == (-1, b"")


@served
async def test_an_error_is_answered_with_its_code() -> None:
    class Refused(KafkaError):
        code = ErrorCode.INVALID_REQUEST

    def refuse(_request: Any, _ctx: Context) -> ApiVersionsResponse:
        raise Refused("no")

    async with connected({18: refuse}) as client:
        await client.send(request_frame(APIS[18], 0, 7, None, ApiVersionsRequest()))
        number, body = await client.answer()
        assert number == 7
        assert decode(ApiVersionsResponse, 0, body).error_code == ErrorCode.INVALID_REQUEST


@served
async def test_an_error_that_the_response_cannot_carry_closes_only_its_connection() -> None:
    class Busy(KafkaError):
        code = ErrorCode.REQUEST_TIMED_OUT

    async def refuse(_request: Any, _ctx: Context) -> CreateTopicsResponse:
        raise Busy("no controller has answered")

    async with connected({19: refuse}) as client:
        await client.send(request_frame(APIS[19], 5, 1, None, CreateTopicsRequest()))
        assert await client.answer() == (-1, b"")
        assert client.owner.ended.is_set()


@served
async def test_a_client_that_disconnects_cancels_its_waiting_request() -> None:
    def never(_request: Any, _ctx: Context) -> Parked[MetadataResponse]:
        return Parked(["key"], 60_000, lambda: None, MetadataResponse)

    async with connected({3: never}) as client:
        await client.ask(1)
        while not len(client.owner.waiters):
            await asyncio.sleep(0)
        client.sock.close()
        await client.owner.ended.wait()
        assert len(client.owner.waiters) == 0


@served
async def test_requests_sent_before_a_disconnect_are_handled() -> None:
    """A producer with acks=0 waits for nothing before it closes its connection."""
    handled: list[int] = []
    may_go_on = asyncio.Event()

    async def later() -> None:
        await may_go_on.wait()

    def produce(_request: Any, ctx: Context) -> Coroutine[None, None, None] | None:
        handled.append(ctx.header.correlation_id)
        return later() if len(handled) == 1 else None

    async with connected({0: produce}) as client:
        last = 2 * REQUESTS_A_TURN
        sent = (request_frame(APIS[0], 9, each, None, ProduceRequest()) for each in range(last))
        await client.send(b"".join(sent))
        client.sock.close()
        await asyncio.sleep(0.05)  # long enough to read everything and the end of the stream
        may_go_on.set()
        await client.owner.ended.wait()
        assert handled == list(range(last))


@served
async def test_a_bad_frame_after_the_last_request_of_a_client_that_left_ends_the_session() -> None:
    may_go_on = asyncio.Event()

    async def later(_request: Any, _ctx: Context) -> MetadataResponse:
        await may_go_on.wait()
        return MetadataResponse()

    async with connected({3: later}) as client:
        await client.ask(1)
        await client.send(b"\xff" * 8)
        client.sock.close()
        await client.owner.ended.wait()
        may_go_on.set()


@served
async def test_a_waiting_request_that_fails_is_answered_and_others_continue_to_wait() -> None:
    failure: list[Exception] = []

    def wait(_request: Any, ctx: Context) -> Parked[EndTxnResponse]:
        def attempt() -> EndTxnResponse | None:
            if failure and ctx.header.correlation_id == 0:
                raise failure[0]
            return EndTxnResponse() if failure else None

        return Parked(["key"], 60_000, attempt, EndTxnResponse)

    async with connected({26: wait}) as client, connected({26: wait}) as other:
        other.owner.waiters = client.owner.waiters
        for number, each in enumerate((client, other)):
            await each.send(request_frame(APIS[26], 3, number, None, EndTxnRequest()))
        while len(client.owner.waiters) < 2:
            await asyncio.sleep(0)
        failure.append(NotCoordinator("moved"))
        client.owner.waiters.changed("key")
        number, body = await client.answer()
        assert decode(EndTxnResponse, 3, body[1:]).error_code == ErrorCode.NOT_COORDINATOR
        assert (number, (await other.answer())[0]) == (0, 1)


@served
async def test_an_error_that_the_version_cannot_carry_closes_the_connection() -> None:
    def moved(_request: Any, _ctx: Context) -> OffsetFetchResponse:
        raise NotCoordinator("moved")

    for version, is_told in ((7, True), (8, False), (10, False)):
        async with connected({9: moved}) as client:
            await client.send(request_frame(APIS[9], version, 5, None, OffsetFetchRequest()))
            number, body = await client.answer()
            assert number == (5 if is_told else -1), version
            if is_told:
                assert decode(OffsetFetchResponse, 7, body[1:]).error_code == 16


@served
async def test_a_bug_in_a_waiting_request_closes_its_connection_only() -> None:
    def wait(_request: Any, _ctx: Context) -> Parked[OffsetFetchResponse]:
        # The version has no field for this error.
        return Parked(
            ["key"], 60_000, lambda: OffsetFetchResponse(error_code=16), OffsetFetchResponse
        )

    async with connected({9: wait}) as client:
        await client.send(request_frame(APIS[9], 8, 5, None, OffsetFetchRequest()))
        while not len(client.owner.waiters):
            await asyncio.sleep(0)
        client.owner.waiters.changed("key")
        assert await client.answer() == (-1, b"")


def produced(size_bytes: int, acks: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(size_bytes))
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[data])])


LIMITED: dict[ClientEntity, Configs] = {
    ClientEntity("ANONYMOUS"): {"producer_byte_rate": "1000"},
}


@served
async def test_a_connection_over_its_quota_is_answered_at_once_and_then_muted() -> None:
    handlers: dict[int, AnyHandler] = {0: lambda *_: ProduceResponse(), 3: at_once}
    async with connected(handlers, quotas=LIMITED) as client:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await client.send(request_frame(APIS[0], 9, 1, "app", produced(10_200, 1)))
        number, body = await client.answer()
        assert number == 1
        told_ms = decode(ProduceResponse, 9, body[1:]).throttle_time_ms
        assert 200 <= told_ms < 400
        assert loop.time() - began < 0.15
        assert client.session.is_busy
        assert not client.session.has_work, "it may be closed if it is mute for too long"
        await client.ask(2)
        await client.answer()
        assert loop.time() - began >= told_ms / 1000
        assert not client.session.is_busy


@served
async def test_requests_without_responses_are_throttled_too() -> None:
    seen = []

    def swallow(request: ProduceRequest, _ctx: Context) -> None:
        seen.append(request)

    async with connected({0: swallow, 3: at_once}, quotas=LIMITED) as client:
        for number in range(2):
            await client.send(request_frame(APIS[0], 9, number, "app", produced(10_200, 0)))
        client.sock.shutdown(socket.SHUT_WR)
        await asyncio.sleep(0.1)
        assert len(seen) == 1
        await asyncio.sleep(0.4)
        assert len(seen) == 2, "the client has closed, but what it had sent is taken"


@served
async def test_a_throttle_time_too_long_for_the_response_is_capped() -> None:
    hardly: dict[ClientEntity, Configs] = {ClientEntity("ANONYMOUS"): {"producer_byte_rate": "1"}}
    handlers: dict[int, AnyHandler] = {0: lambda *_: ProduceResponse()}
    async with connected(handlers, 1 << 22, hardly) as client:
        await client.send(request_frame(APIS[0], 9, 1, "app", produced(3_000_000, 1)))
        number, body = await client.answer()
        assert number == 1
        assert decode(ProduceResponse, 9, body[1:]).throttle_time_ms == LONGEST_MS


@served
async def test_a_muted_connection_can_be_closed() -> None:
    async with connected({0: lambda *_: ProduceResponse()}, quotas=LIMITED) as client:
        await client.send(request_frame(APIS[0], 9, 1, "app", produced(100_000, 1)))
        await client.answer()
        client.session.close("the broker stops")
        await client.owner.ended.wait()
        assert not client.session.is_busy
