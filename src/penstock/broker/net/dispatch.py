"""Takes a frame to its handler: finds the API and version, decodes, and encodes the response."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any, TypeAlias

from penstock.broker.context import Context, Peer, Reply, Services
from penstock.broker.net.charging import throttled
from penstock.broker.net.large_requests import LARGE_BYTES, LOGINS, decoder_of_large
from penstock.broker.net.routes import Route, Routes
from penstock.clock import Clock
from penstock.errors import KafkaError, ProtocolError
from penstock.wire.codec import yielding_encoder
from penstock.wire.frame import (
    API_VERSIONS,
    RequestHeader,
    read_request_header,
    response_start,
    set_size,
)
from penstock.wire.negotiation import api_versions_refusal
from penstock.wire.produce_count import MOST_PARTITIONS, SMALLEST_BYTES, names_too_many
from penstock.wire.schema import Message, Splice

logger = logging.getLogger(__name__)

Encoded: TypeAlias = tuple[bytearray, Sequence[Splice]]
"""A response's bytes, and the record regions to send between them."""
Done: TypeAlias = Reply[Message] | Encoded | bytearray
Outcome: TypeAlias = Done | Coroutine[Any, Any, Done]
"""What a handler returned, or a response that is encoded already."""


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
        routes = self._routes
        route = routes.by_version.get((api.key, header.version)) or routes.find(header)
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
            handle = partial(self._handle_large, request, route, *request.large)
            return self._routes.slots.run(route.api, request.size_bytes, handle)
        route.requests += 1
        now_ms = self._clock.now_ms()
        context = Context(request.header, route.version, self.peer, now_ms, self._services)
        try:
            return route.handle(request.message, context)
        except KafkaError as error:
            return self.refused(request, error)

    async def _handle_large(self, request: Request, route: Route, data: bytes, at: int) -> Done:
        loop, worker = asyncio.get_running_loop(), self._services.resources.worker
        decode = decoder_of_large(route.api, route.version)
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
        """The response with its throttle time, and that time."""
        if request.route is None:
            return response, 0
        return throttled(request, response, self.peer, self._services)

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
