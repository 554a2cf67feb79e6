"""One client connection: bytes in, requests one after the other, replies out in order.

The socket is non-blocking and driven by the loop's readiness callbacks. A request is handled in the
callback that received its last byte, without a task. While a request waits, or its response does
not fit into the socket, at most one buffer more is read: that is the back-pressure. A produce
request that waits for acks does not block the next produce request; otherwise each of a pipelining
producer's requests would cost a replication round trip.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

from penstock.broker.context import Peer
from penstock.broker.net.dispatch import Dispatch, Done, Encoded, Outcome, Request
from penstock.broker.net.mute import Mute
from penstock.broker.net.rate_limited_log import RateLimitedLog
from penstock.broker.net.reply_line import InLine, Pieces, ReplyLine
from penstock.broker.net.request_memory import RequestMemory, Reservation
from penstock.broker.net.slices import SendSlice, interleaved, send_by_kernel, send_first
from penstock.broker.parked import Parked
from penstock.broker.waiter import Waiter
from penstock.errors import KafkaError, ProtocolError
from penstock.log.lookup import LogSlice
from penstock.wire.frame import FrameBuffer, FrameHeldBack
from penstock.wire.schema import Message

logger = logging.getLogger(__name__)
_client_log = RateLimitedLog()
_failure_log = RateLimitedLog()
"""Apart from `_client_log`: bad clients must not hide a bug of ours."""

READ_AHEAD_BYTES: Final = 1 << 16
PRODUCE: Final = 0
KEPT_BYTES: Final = 1 << 21
"""A buffer that has grown larger is dropped with its request: the client may be idle afterwards."""
REQUESTS_A_TURN: Final = 64
TURN_NS: Final = 10_000_000
"""One connection's turn ends after so many pipelined requests or so much time."""
SEND_BYTES: Final = 1 << 16
"""Once this many response bytes are buffered, they are sent before the next request is handled."""


class Owner(Protocol):
    """What a session needs of the server that accepted it."""

    def closed(self, session: "Session") -> None: ...

    def park(
        self,
        parked: Parked[Message],
        done: Callable[[Message], object],
        failed: Callable[[Exception], object],
    ) -> Waiter: ...

    def run(self, work: Coroutine[Any, Any, Done], session: "Session") -> None: ...


class Session:
    """A connection. Belongs to the event loop. `close` may be called at any time, repeatedly."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        dispatch: Dispatch,
        owner: Owner,
        max_frame_bytes: int,
        send_slice: SendSlice = send_by_kernel,
    ) -> None:
        self._loop, self._sock, self._dispatch, self._owner = loop, sock, dispatch, owner
        self._send_slice = send_slice
        self._fd = sock.fileno()
        self._buffer = FrameBuffer(max_frame_bytes)
        self._out: deque[memoryview | LogSlice] = deque()
        self._request: Request | None = None
        self._waiter: Waiter | None = None
        self._line = ReplyLine()
        self._out_bytes = 0
        """Bytes of responses made since the output buffer was last empty."""
        self._mute = Mute(loop, dispatch.quotas, self.pump)
        self._reading = self._pumping = self._writing = self._yields = self._has_ended = False
        self.active_at = loop.time()
        self._reservation: Reservation | None = None
        self._runs = False
        """A coroutine handles the request: its memory stays reserved until it ends, even if the
        client disconnects.
        """
        self.resume_reading()

    def limit_memory(self, memory: RequestMemory) -> None:
        """Read large requests only while `memory` has room."""
        self._reservation = Reservation(memory, self._on_room)
        self._buffer.reserve, self._buffer.kept_bytes = self._reserve, KEPT_BYTES

    def _reserve(self, size_bytes: int) -> bool:
        reservation = self._reservation
        if reservation is None or size_bytes <= reservation.size_bytes:
            return True
        if self._request is not None or self._writing:
            # Not its turn yet: `pump` reads on later, and it holds no memory meanwhile.
            return False
        return reservation.grow(size_bytes, self._loop.time())

    def is_slow(self, now_s: float) -> bool:
        """Whether a partly received request has held memory for too long."""
        reservation = self._reservation
        if reservation is None or self._request is not None:
            return False
        return reservation.is_overdue(now_s) and not self._buffer.has_frame

    def _release(self) -> None:
        if self._reservation is not None:
            self._reservation.release()

    def _on_room(self) -> None:
        self._loop.call_soon(self.resume_reading)

    def trim(self) -> None:
        """Release the buffers of past requests: the client is idle."""
        self._buffer.trim()

    def resume_reading(self) -> None:
        if not self._reading and not self._has_ended and self._fd >= 0 and not self._mute.is_on:
            self._reading = True
            self._loop.add_reader(self._fd, self.on_readable)

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def allow_frames(self, max_bytes: int) -> None:
        """Read requests of up to this size from now on."""
        self._buffer.max_frame_bytes = max_bytes

    def mute(self, delay_ms: int) -> None:
        """Handle no request for this long; responses are sent at once (KIP-219)."""
        if self._fd >= 0 and self._mute.extend(delay_ms):
            self.pause_reading()

    @property
    def has_work(self) -> bool:
        """A request waits for its response or its turn, or responses wait for the socket."""
        return (
            self._request is not None or self._writing or self._yields or bool(self._line.waiting)
        )

    @property
    def is_busy(self) -> bool:
        """No request is taken: there is work, or the connection is muted."""
        return self.has_work or self._mute.is_on

    @property
    def peer(self) -> Peer:
        return self._dispatch.peer

    @property
    def is_sending(self) -> bool:
        """Responses wait for the client to read."""
        return self._writing

    @property
    def holds_files(self) -> bool:
        """Log files stay open until the client has read its response."""
        return any(isinstance(piece, LogSlice) for piece in self._out)

    def _may_go_on(self) -> bool:
        """Whether no request waits. A waiter that gives way expires as soon as another request
        arrives.
        """
        waiter = self._waiter
        if waiter is not None and waiter.gives_way and self._buffer.has_frame:
            waiter.expire()
        return self._request is None

    def _may_pass(self) -> bool:
        """Whether the next request may be handled while earlier ones wait for acks."""
        return not self._line.is_full and self._buffer.next_api_key == PRODUCE

    def on_readable(self) -> None:
        try:
            count = self._sock.recv_into(self._buffer.space())
        except BlockingIOError:
            return
        except FrameHeldBack:
            self.pause_reading()
            return
        except (OSError, ProtocolError) as error:  # a bad frame behind a waiting request
            self.close(str(error))
            return
        if count == 0:
            self.end()
            return
        self._buffer.received(count)
        if (self._request is None or self._waiter is not None) and not self._writing:
            self.pump()
        if self._request is not None or self._writing or self._yields or self._line.waiting:
            self._pause_if_ahead()

    def end(self) -> None:
        """The client has closed its side. Requests buffered behind a running one are still handled,
        as in Kafka: a producer with acks=0 closes its connection after writing the last byte.
        """
        self._has_ended = True
        self.pause_reading()
        try:
            self._close_unless_at_work()
        except ProtocolError as error:
            self.close(str(error))

    def _close_unless_at_work(self) -> None:
        is_at_work = self._yields or (self._request is not None and self._waiter is None)
        is_at_work = is_at_work or self._mute.is_on
        if not is_at_work or not self._buffer.has_frame:
            self.close("closed by the client")

    def _pause_if_ahead(self) -> None:
        if self._buffer.pending_bytes > READ_AHEAD_BYTES:
            self.pause_reading()

    def pump(self) -> None:
        """Handle whole requests until one has to wait, then send their responses.

        Stops early to give other connections a turn, and to bound memory: a client may pipeline
        many small requests and read no response.
        """
        if self._pumping or self._yields:
            # Called from a handler's reply, while the outer call continues. Or the next turn is
            # scheduled: if each arrival and each reply added one, others would wait for all.
            return
        self._pumping = True
        self.active_at = self._loop.time()
        left, turn_ends_ns = REQUESTS_A_TURN, 0
        try:
            while self._may_go_on() and not self._writing and self._fd >= 0:
                if self._mute.is_on or (self._line.waiting and not self._may_pass()):
                    break
                if not left or self._out_bytes > SEND_BYTES:
                    self._yields = True
                    self._loop.call_soon(self._take_turn)
                    break
                frame = self._buffer.next()
                if frame is None:
                    break
                began_ns = self._handle(frame)
                turn_ends_ns = turn_ends_ns or began_ns + TURN_NS
                left = left - 1 if began_ns < turn_ends_ns else 0
            if self._out and not self._writing:
                self.on_writable()
            if not self._reading and (
                not self.is_busy or self._buffer.pending_bytes <= READ_AHEAD_BYTES
            ):
                self.resume_reading()
            if self._has_ended:
                self._close_unless_at_work()
        except ProtocolError as error:
            now_s = self._loop.time()
            _client_log.warn(now_s, "closing the connection of %s: %s", self._dispatch.peer, error)
            self.close(str(error))
        except Exception as error:  # noqa: BLE001  the boundary around one client
            self.end_after(error)
        finally:
            self._pumping = False

    def _take_turn(self) -> None:
        self._yields = False
        self.pump()

    def end_after(self, error: Exception) -> None:
        """Close after a request raised."""
        now_s = self._loop.time()
        _failure_log.failed(now_s, error, "a request from %s failed", self._dispatch.peer)
        self.close("internal error")

    def _fail(self, error: Exception) -> None:
        """Answer a waiting request whose `attempt` raised."""
        if isinstance(error, KafkaError):
            self.refuse(error)
        else:
            self.end_after(error)

    def _handle(self, frame: memoryview) -> int:
        """Handle one request; returns the time at which it began."""
        self._request = request = self._dispatch.read(frame)
        self.carry_out(self._dispatch.handle(request))
        return request.began_ns

    def carry_out(self, outcome: Outcome) -> None:
        """Send the reply, or wait as the handler's outcome says."""
        request, self._runs = self._request, False
        if outcome is None or isinstance(outcome, (Message, bytearray, tuple)):
            self.reply(outcome)
        elif isinstance(outcome, Parked):
            if self._fd < 0:
                self._release()
                return  # the client disconnected meanwhile
            if request is not None:
                request.note_spent()
            if outcome.has_acted and request is not None:
                self._release()
                in_line, self._request = self._line.append(request), None
                done = partial(self._reply_in_line, in_line)
                in_line.waiter = self._owner.park(outcome, done, self.end_after)
            else:
                self._waiter = self._owner.park(outcome, self.reply, self._fail)
        else:
            if request is not None:
                request.note_spent()
            self._runs = True
            self._owner.run(outcome, self)

    def reply(self, response: Message | Encoded | bytearray | None) -> None:
        """Send the response, if there is one, and go on to the next request."""
        request, self._request, self._waiter = self._request, None, None
        reservation = self._reservation
        if reservation is not None and reservation.size_bytes:
            reservation.release()
        if request is None or self._fd < 0:
            return
        pieces = self._pieces(request, response)
        if self._line.waiting:
            self._line.append(request, pieces)
        else:
            self._out.extend(pieces)
        self.pump()

    def _pieces(self, request: Request, response: Message | Encoded | bytearray | None) -> Pieces:
        if isinstance(response, bytearray):
            self._out_bytes += len(response)
            return (memoryview(response),)
        if isinstance(response, tuple):
            frame, splices = response
            if request.delay_ms:
                self.mute(request.delay_ms)
        else:
            if self._dispatch.quotas.is_on:
                response, delay_ms = self._dispatch.charge(request, response)
                if delay_ms:
                    self.mute(delay_ms)
            if response is None:
                return ()
            frame, splices = self._dispatch.encode(request, response)
        self._out_bytes += len(frame)
        if not splices:
            return (memoryview(frame),)
        for _, region in splices:
            self._out_bytes += len(region)
        return interleaved(frame, splices)

    def _reply_in_line(self, in_line: InLine, response: Message) -> None:
        """Set the response of a request that waited; it is sent after all earlier ones."""
        if self._fd < 0:
            return
        in_line.reply = self._pieces(in_line.request, response)
        self._out.extend(self._line.ready())
        self.pump()

    def refuse(self, error: KafkaError) -> None:
        """Answer a request whose handler raised a refusal while waiting or running."""
        if self._request is None:
            self._release()
            return
        try:
            refusal = self._dispatch.refused(self._request, error)
        except ProtocolError as unanswerable:
            self.close(str(unanswerable))
            return
        self.reply(refusal)

    def on_writable(self) -> None:
        """Send as much as the socket takes; send the rest when it is writable again."""
        self.active_at = self._loop.time()
        try:
            while self._out and self._send_some():
                pass
        except BlockingIOError:
            pass
        except OSError as error:
            self.close(str(error))
            return
        is_full = bool(self._out)
        if not is_full:
            self._out_bytes = 0
        if is_full != self._writing:
            self._writing = is_full
            if is_full:
                self._loop.add_writer(self._fd, self.on_writable)
            else:
                self._loop.remove_writer(self._fd)
                self.pump()

    def _send_some(self) -> bool:
        """Send the first pieces of the output; False when the socket took only part of them.

        The socket is then most likely full: waiting for the loop is cheaper than another call.
        """
        out = self._out
        first = out[0]
        if len(out) > 1 or isinstance(first, LogSlice):
            return send_first(self._sock, out, self._send_slice)
        sent = self._sock.send(first)  # the case of most requests
        if sent < len(first):
            out[0] = first[sent:]
            return False
        out.clear()
        return True

    def close(self, reason: str) -> None:
        if self._fd < 0:
            self._release()  # its request failed after the client had disconnected
            return
        logger.debug("connection of %s ends: %s", self._dispatch.peer, reason)
        self.pause_reading()
        if self._writing:
            self._loop.remove_writer(self._fd)
        self._fd = -1
        self._mute.cancel()
        if not self._runs:
            self._release()
        if self._reservation is not None:
            self._reservation.forget()
        self._out.clear()
        self._request = None
        if self._waiter is not None:
            self._waiter.cancel()
        self._line.cancel()
        self._sock.close()
        self._owner.closed(self)
