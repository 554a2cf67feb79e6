"""Takes a frame to its handler: finds the API and version, decodes, and encodes the response."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Final, TypeAlias

import msgspec

from penstock.broker.context import AnyHandler, Context, Peer, Reply, Services
from penstock.broker.handling.slots import Slot
from penstock.broker.peers.connection import BROKER_SOFTWARE
from penstock.clock import Clock
from penstock.errors import KafkaError, ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import Api
from penstock.wire.codec import decoder, encoder, yielding_decoder, yielding_encoder
from penstock.wire.frame import (
    API_VERSIONS,
    RequestHeader,
    read_request_header,
    response_start,
    set_size,
)
from penstock.wire.messages.fetch import FetchRequest
from penstock.wire.negotiation import api_versions_refusal
from penstock.wire.produce_count import MOST_PARTITIONS, SMALLEST_BYTES, names_too_many
from penstock.wire.schema import Message, Splice, fields

logger = logging.getLogger(__name__)

Encoded: TypeAlias = tuple[bytearray, Sequence[Splice]]
"""A response's bytes, and the record regions to send between them."""
Done: TypeAlias = Reply[Message] | Encoded | bytearray
Outcome: TypeAlias = Done | Coroutine[Any, Any, Done]
"""What a handler returned, or a response that is encoded already."""

LARGE_BYTES: Final = 1 << 18
"""Larger requests name very many partitions, topics or groups, and take seconds. They are decoded
on another thread and handled in turns, with other requests in between.
"""
LARGE_AT_WORK: Final = 8
HUGE_BYTES: Final = 1 << 22
"""A request of short names takes forty times its size once decoded. So at most `LARGE_AT_WORK`
large requests run at a time, and only one larger than `HUGE_BYTES`.
"""
MOST_ITEMS: Final = 2_000_000
"""The most items (names, partitions and so on) that a client's request may list, over all its
lists: handlers scan the lists before they take turns.
"""

PRODUCE: Final = 0
LOGINS: Final = frozenset({17, 36})
"""SaslHandshake and SaslAuthenticate. They hold one string, so none takes long. A refusal is
delayed, and clients that have not logged in must not hold the slots of large requests meanwhile.
"""
NOT_CHARGED: Final = LOGINS | {27}
"""Logins, and transaction markers, which coordinators send."""
VIEWS_FRAME: Final = {PRODUCE}
"""Produce: its records are views of the frame. Other requests are small and decode faster from
bytes.
"""


@dataclass
class Route:
    """One API at one version, with its counts and times for the metrics."""

    api: Api
    version: int
    handle: AnyHandler
    decode: Callable[[Buffer, int], tuple[Message, int]]
    encode: Callable[[Message, bytearray], Sequence[Splice]]
    views_frame: bool
    tells_errors: bool
    """The response has an error code of its own at this version."""
    requests: int = 0
    errors: int = 0
    total_ns: int = 0
    """From the last byte of each request to its encoded response, including waits."""
    times: list[int] = field(default_factory=lambda: [0] * 64)
    """`times[n]` counts requests that took from 2**(n-1) to less than 2**n nanoseconds."""


class Request:
    """A decoded request and the time at which its last byte arrived."""

    def __init__(
        self,
        header: RequestHeader,
        route: Route | None,
        message: Message | None,
        began_ns: int,
        size_bytes: int = 0,
        large: tuple[bytes, int] | None = None,
    ) -> None:
        self.header = header
        self.route = route
        self.message = message
        self.began_ns = began_ns
        self.size_bytes = size_bytes
        self.large = large
        """A frame that is not decoded yet, and the position at which its message begins."""
        self.spent_ns = 0
        """The time that handling took before the request began to wait; 0 if it did not wait."""
        self.delay_ms = 0
        """For a response that is encoded already: how long its client is throttled."""

    def note_spent(self) -> None:
        """Note the time spent so far: the wait that begins now is not charged to the client."""
        if not self.spent_ns:
            self.spent_ns = perf_counter_ns() - self.began_ns


class Routes:
    """The served APIs; a route for each API and version is made at first use."""

    def __init__(self, handlers: Mapping[int, AnyHandler]) -> None:
        self.handlers = handlers
        self.large, self.huge = asyncio.Semaphore(LARGE_AT_WORK), asyncio.Semaphore(1)
        self.by_version: dict[tuple[int, int], Route] = {}

    def find(self, header: RequestHeader) -> Route:
        key = (header.api.key, header.version)
        route = self.by_version.get(key)
        if route is None:
            route = self.by_version[key] = self._make(header.api, header.version)
        return route

    def _make(self, api: Api, version: int) -> Route:
        handler = self.handlers.get(api.key)
        if handler is None or not api.low <= version <= api.high:
            raise ProtocolError(f"{api.name} v{version} is not served")
        return Route(
            api,
            version,
            handler,
            decoder(api.request, version),
            encoder(api.response, version),
            api.key in VIEWS_FRAME,
            any(each.name == "error_code" for each in fields(api.response, version)),
        )


class Dispatch:
    """Decodes and dispatches the requests of one connection, and encodes their responses."""

    def __init__(self, routes: Routes, services: Services, clock: Clock, peer: Peer) -> None:
        self._routes, self._services, self._clock, self.peer = routes, services, clock, peer
        self.quotas = services.quotas

    def read(self, frame: memoryview) -> Request:
        began_ns = perf_counter_ns()
        header, at = read_request_header(frame)
        api = header.api
        if api.key == API_VERSIONS and not api.low <= header.version <= api.high:
            # KIP-511: an unknown version is answered in version 0, not refused.
            return Request(header, None, None, began_ns)
        if api.inter_broker and not self._services.listeners.serves(api.key, self.peer.listener):
            raise ProtocolError(f"{api.name} is for brokers only")
        route = self._routes.find(header)
        size_bytes = len(frame)
        if route.views_frame:
            if size_bytes > SMALLEST_BYTES and names_too_many(frame, at, route.version):
                raise ProtocolError(f"{api.name} names more than {MOST_PARTITIONS} partitions")
            return Request(header, route, route.decode(frame, at)[0], began_ns, size_bytes)
        data = bytes(frame)
        if size_bytes > LARGE_BYTES and api.key not in LOGINS:
            return Request(header, route, None, began_ns, size_bytes, (data, at))
        return Request(header, route, route.decode(data, at)[0], began_ns, size_bytes)

    def handle(self, request: Request) -> Outcome:
        route = request.route
        if route is None:
            return api_versions_refusal(request.header.correlation_id)
        if request.large is not None:
            return self._handle_large(request, route, *request.large)
        route.requests += 1
        now_ms = self._clock.now_ms()
        context = Context(request.header, route.version, self.peer, now_ms, self._services)
        try:
            return route.handle(request.message, context)
        except KafkaError as error:
            return self.refused(request, error)

    async def _handle_large(self, request: Request, route: Route, data: bytes, at: int) -> Done:
        if route.api.inter_broker:  # clients must not delay requests between brokers
            return await self._handle_off_loop(request, route, data, at)
        is_huge = len(data) > HUGE_BYTES
        async with Slot(self._routes.huge if is_huge else self._routes.large):
            return await self._handle_off_loop(request, route, data, at)

    async def _handle_off_loop(self, request: Request, route: Route, data: bytes, at: int) -> Done:
        loop, worker = asyncio.get_running_loop(), self._services.resources.worker
        most_items = None if route.api.inter_broker else MOST_ITEMS
        decode = yielding_decoder(route.api.request, route.version, most_items)
        request.message, _ = await loop.run_in_executor(worker, decode, data, at)
        request.large = None
        reply = self.handle(request)
        if isinstance(reply, Coroutine):
            reply = await reply
        if not isinstance(reply, Message):
            return reply
        if self.quotas.is_on:
            charged, request.delay_ms = self.charge(request, reply)
            assert charged is not None
            reply = charged
        encode = yielding_encoder(route.api.response, route.version)
        return await loop.run_in_executor(worker, self._encode, request, reply, encode)

    def refused(self, request: Request, error: KafkaError) -> Message:
        """The response that carries the error code of a request refused as a whole.

        A version without that field closes the connection: a response without the error would look
        like an empty success.
        """
        assert request.route is not None
        request.route.errors += 1
        api = request.header.api
        logger.debug("%s of %s refused: %s", api.name, self.peer, error)
        if not request.route.tells_errors:
            raise ProtocolError(f"{api.name} v{request.route.version} has no error code: {error}")
        return api.response(error_code=error.code)

    def charge(self, request: Request, response: Message | None) -> tuple[Message | None, int]:
        """The response with its throttle time, and that time (KIP-219).

        The handler may have set a throttle time already. A fetch over its request quota is answered
        in full, where Kafka returns it empty: its session has already recorded what was sent.
        """
        api, quotas = request.header.api, self._services.quotas
        if request.route is None or api.key in NOT_CHARGED or self._sent_by_broker(request):
            return response, 0
        user, client_id = self.peer.principal.name, request.header.client_id or ""
        delay_ms = told_ms = int(getattr(response, "throttle_time_ms", 0))
        now_ms = quotas.monotonic_ms()
        if api.key == PRODUCE and quotas.produce.is_on:
            delay_ms = quotas.produce_ms(user, client_id, request.size_bytes, now_ms)
        if quotas.request.is_on and response is not None:
            spent_ns = request.spent_ns or perf_counter_ns() - request.began_ns
            delay_ms = max(delay_ms, quotas.request_ms(user, client_id, spent_ns, now_ms))
        if delay_ms > told_ms and response is not None and hasattr(response, "throttle_time_ms"):
            response = msgspec.structs.replace(response, throttle_time_ms=delay_ms)
        return response, delay_ms

    def _sent_by_broker(self, request: Request) -> bool:
        """Whether a broker sent the request, for itself or as a forwarder: brokers are never
        throttled.
        """
        if request.header.api.inter_broker:
            return True
        message, listeners = request.message, self._services.listeners
        if isinstance(message, FetchRequest):
            is_follower = max(message.replica_id, message.replica_state.replica_id) >= 0
            return is_follower and self.peer.listener == listeners.inter_broker_listener
        # The software name rules out nearly all clients, and is cheaper to compare.
        return self.peer.software_name == BROKER_SOFTWARE and self._services.is_broker(self.peer)

    def encode(self, request: Request, response: Message) -> Encoded:
        assert request.route is not None, "the response without a route is encoded already"
        return self._encode(request, response, request.route.encode)

    def _encode(
        self,
        request: Request,
        response: Message,
        encode: Callable[[Message, bytearray], Sequence[Splice]],
    ) -> Encoded:
        header, route = request.header, request.route
        assert route is not None
        took_ns = perf_counter_ns() - request.began_ns
        route.total_ns += took_ns
        route.times[took_ns.bit_length()] += 1
        frame = response_start(header.api, header.version, header.correlation_id)
        splices = encode(response, frame)
        set_size(frame, splices)
        return frame, splices
