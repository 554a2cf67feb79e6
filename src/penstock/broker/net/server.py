"""The listeners of a broker: accepts connections within their limits and owns their sessions."""

import asyncio
import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, TypeAlias

from penstock.broker.context import Peer, Services
from penstock.broker.net.connection_limits import (
    NO_LIMITS,
    ConnectionLimits,
    ListenerLimits,
    listener_limits,
)
from penstock.broker.net.dispatch import Dispatch, Done
from penstock.broker.net.login import LoginDispatch
from penstock.broker.net.protection import Protection
from penstock.broker.net.rate_limited_log import RateLimitedLog
from penstock.broker.net.request_memory import request_memory
from penstock.broker.net.routes import Routes
from penstock.broker.net.session import Session
from penstock.broker.net.slices import SendSlice, send_by_kernel
from penstock.broker.net.tls_session import TlsSession
from penstock.broker.parked import Parked
from penstock.broker.quotas.limits import Limits, QuotaType
from penstock.broker.waiter import Waiter
from penstock.clock import Clock
from penstock.config.effective import BrokerLayers
from penstock.config.listener import Endpoint
from penstock.config.network import DEFAULT_RECEIVE_BUFFER_BYTES, NetworkConfig
from penstock.errors import ConfigError, KafkaError, ProtocolError
from penstock.wire.schema import Message

logger = logging.getLogger(__name__)
_client_log = RateLimitedLog()

Work: TypeAlias = Coroutine[Any, Any, Done]

ACCEPT_PAUSE_S = 1.0
ACCEPTS_A_TURN = 8
"""Connections accepted in one loop turn, some 70 us each: clients that connect in crowds must not
hold up requests.
"""
MOST_HELD = 1000
IDLE_CHECK_S = 1.0
TRIM_S = 10.0
"""A connection idle this long gives its buffer back."""
LOGIN_TIMEOUT_S = 30.0
"""For the TLS handshake and the login together."""
TCP_WINDOW_CLAMP: int | None = getattr(socket, "TCP_WINDOW_CLAMP", None)
MOST_WINDOW_BYTES = 1 << 20
"""Bounds what the system buffers of a client whose requests are not read for now. The window that
Kafka's default of 100 KB allows cuts a request of 1 MB into eight wake-ups; with this one, such
produce requests take a quarter less CPU.
"""


def bind(endpoint: Endpoint, network: NetworkConfig) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    every_interface = not endpoint.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if every_interface or ":" in endpoint.host else socket.AF_INET
    try:
        sock = socket.create_server(
            (endpoint.host, endpoint.port),
            family=family,
            backlog=network.socket_listen_backlog_size,
            dualstack_ipv6=every_interface,
        )
    except OSError as error:
        where = f"{endpoint.host or '*'}:{endpoint.port}"
        raise ConfigError(f"listeners: cannot listen on {where}: {reason(error)}") from None
    sock.settimeout(0)
    # Set on the listening socket and inherited, so that the TCP window is negotiated with it.
    if network.socket_send_buffer_bytes > 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, network.socket_send_buffer_bytes)
    receive_bytes = network.socket_receive_buffer_bytes
    if receive_bytes > 0 and receive_bytes != DEFAULT_RECEIVE_BUFFER_BYTES:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    elif TCP_WINDOW_CLAMP is not None:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, MOST_WINDOW_BYTES)
    return sock


def reason(error: OSError) -> str:
    """The system's text for an error; a failed name lookup has no errno of its own."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)


class Server:
    """Accepts on bound sockets and owns the sessions. Belongs to the event loop."""

    send_slice: SendSlice = staticmethod(send_by_kernel)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        tasks: asyncio.TaskGroup,
        routes: Routes,
        services: Services,
        clock: Clock,
    ) -> None:
        self._loop, self._tasks = loop, tasks
        self._routes, self._services, self._clock = routes, services, clock
        self._listeners: dict[socket.socket, str] = {}
        self.protections: Mapping[str, Protection] = {}
        """By listener; a listener without an entry is PLAINTEXT."""
        self._unauthenticated: dict[Session, float] = {}
        """Connections whose TLS handshake or login is not complete, and when each is closed for
        that.
        """
        self._running: set[asyncio.Task[None]] = set()
        self._at_work = 0
        self._queued: deque[tuple[Work, Session]] = deque()
        """Requests that wait until fewer than `queued.max.requests` are running."""
        self.memory, self.max_requests = request_memory(-1), 500
        self.sessions: dict[Session, str] = {}
        self.limits = ConnectionLimits(11, 1)
        self.refused_connections = 0
        self._held: set[socket.socket] = set()
        """Refused connections, closed after a delay so that frequent connects are slowed down."""
        self._ip_limits = NO_LIMITS
        self._ips: object = None
        self._own: dict[str, ListenerLimits] = {}
        self._layers: BrokerLayers | None = None

    def listen(self, sock: socket.socket, listener: str) -> None:
        self._listeners[sock] = listener
        self.limits.add_listener(listener)
        self._loop.add_reader(sock, self._accept, sock, listener)

    def _accept(self, listening: socket.socket, listener: str) -> None:
        self._refresh()
        own = self._own.get(listener) or listener_limits(self._texts, listener)
        self._own[listener] = own
        for _ in range(ACCEPTS_A_TURN):
            now_ms = self._clock.monotonic_ms()
            wait_ms = self.limits.wait_ms(listener, self._network, own, now_ms)
            if wait_ms:  # new connections wait in the listen backlog
                self._pause(listening, listener, wait_ms / 1000)
                return
            try:
                sock, address = listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}:
                    # Out of descriptors: accepting again at once would only spin.
                    _client_log.warn(
                        now_ms / 1000,
                        "listener %s pauses accepting connections: %s",
                        listener,
                        error,
                    )
                    self._pause(listening, listener, ACCEPT_PAUSE_S)
                    return
                continue  # the client closed before its connection was accepted
            self.limits.accepted(listener, now_ms)
            host = address[0].removeprefix("::ffff:")
            delay_ms = self.limits.ip_throttle_ms(listener, host, self._ip_limits, now_ms)
            if not delay_ms and self._may_connect(host):
                self._open(sock, Peer(listener, host, address[1]))
                self._make_room(listener)
            else:
                self.refused_connections += 1
                self._close_later(sock, delay_ms)

    def _pause(self, listening: socket.socket, listener: str, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._resume, listening, listener)

    def _resume(self, listening: socket.socket, listener: str) -> None:
        if listening.fileno() >= 0:  # not closed meanwhile
            self.listen(listening, listener)

    @property
    def _network(self) -> NetworkConfig:
        """The current limits: some can be altered while the broker runs."""
        return self._services.config.network

    def _refresh(self) -> None:
        """Read limits again if they were altered."""
        cluster = self._services.cluster
        if cluster.layers is not self._layers:
            self._layers = cluster.layers
            self._texts = self._layers.texts()
            self._own.clear()
        if cluster.image.client_configs is not self._ips:
            self._ips = cluster.image.client_configs
            self._ip_limits = Limits(QuotaType.CONNECTION, self._ips)

    def _may_connect(self, host: str) -> bool:
        has_file = len(self.sessions) < self._services.resources.file_shares.connections
        return has_file and self.limits.has_room(host, self._network)

    def _make_room(self, listener: str) -> None:
        """Close the idlest client connection if a broker's connection exceeds `max.connections`."""
        if len(self.sessions) <= self._network.max_connections:
            return
        others = [each for each in self.sessions if each.peer.listener != listener]
        if others:
            idle = min(others, key=lambda each: (each.is_busy, each.active_at))
            idle.close("a broker needs the connection (max.connections)")

    def _close_later(self, sock: socket.socket, delay_ms: int) -> None:
        if not delay_ms or len(self._held) >= MOST_HELD:
            sock.close()
            return
        self._held.add(sock)

        def close() -> None:
            self._held.discard(sock)
            sock.close()

        self._loop.call_later(delay_ms / 1000, close)

    def _open(self, sock: socket.socket, peer: Peer) -> None:
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        protection = self.protections.get(peer.listener)
        if protection is None:
            dispatch = Dispatch(self._routes, self._services, self._clock, peer)
            limit = self._network.socket_request_max_bytes
            session = Session(self._loop, sock, dispatch, self, limit, self.send_slice)
        else:
            try:
                session = self._open_protected(sock, peer, protection)
            except OSError as error:  # the client has disconnected already
                logger.debug("connection of %s ends: %s", peer, error)
                sock.close()
                return
            self._unauthenticated[session] = self._loop.time() + LOGIN_TIMEOUT_S
        if protection is None or protection.sasl is None:
            session.limit_memory(self.memory)
        self.limits.opened(peer.listener, peer.host)
        self.sessions[session] = peer.host

    def _open_protected(self, sock: socket.socket, peer: Peer, protection: Protection) -> Session:
        limit = self._network.socket_request_max_bytes
        login = None
        if protection.sasl is None:
            dispatch = Dispatch(self._routes, self._services, self._clock, peer)
        else:
            limit = min(limit, protection.sasl.max_receive_bytes)
            dispatch = login = LoginDispatch(
                self._routes, self._services, self._clock, peer, protection.sasl
            )
        if protection.tls is None:
            session = Session(self._loop, sock, dispatch, self, limit, self.send_slice)
        else:
            wrapped = protection.tls.context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
            delay_ms = self._network.connection_failed_authentication_delay_ms
            session = TlsSession(
                self._loop, wrapped, dispatch, self, limit, protection.tls, delay_ms
            )
        if login is not None:
            login.on_login = partial(self._logged_in, session)
            login.on_failure = session.close
        return session

    def secured(self, session: Session) -> None:
        """The TLS handshake is complete; on a SASL listener the client still has to log in."""
        if self.protections[session.peer.listener].sasl is None:
            self._unauthenticated.pop(session, None)

    def _logged_in(self, session: Session) -> None:
        self._unauthenticated.pop(session, None)
        session.allow_frames(self._network.socket_request_max_bytes)
        # Not earlier: clients that have not logged in must not take this memory. Their requests are
        # small, as in Kafka.
        session.limit_memory(self.memory)

    def closed(self, session: Session) -> None:
        self._unauthenticated.pop(session, None)
        session.peer.is_connected = False
        self._services.share.partitions.connection_closed(session.peer.connection)
        host = self.sessions.pop(session, None)
        if host is not None:
            self.limits.closed(session.peer.listener, host)

    def park(
        self,
        parked: Parked[Message],
        done: Callable[[Message], object],
        failed: Callable[[Exception], object],
    ) -> Waiter:
        return self._services.waiters.park(parked, done, failed)

    def run(self, work: Work, session: Session) -> None:
        # Failed logins wait before their response: they must not fill the request slots.
        is_counted = session not in self._unauthenticated
        is_full = is_counted and self._at_work >= self.max_requests
        if is_full and not self._on_inter_broker_listener(session):
            self._queued.append((work, session))
        else:
            self._begin(work, session, is_counted=is_counted)

    def _on_inter_broker_listener(self, session: Session) -> bool:
        """Brokers wait for each other's responses, so their requests do not queue behind those of
        clients.
        """
        listeners = self._services.listeners
        return listeners.clustered and session.peer.listener == listeners.inter_broker_listener

    def _begin(self, work: Work, session: Session, *, is_counted: bool = True) -> None:
        self._at_work += is_counted
        task = self._tasks.create_task(self._run(work, session))
        self._running.add(task)

        def ended(_: asyncio.Task[None]) -> None:
            self._running.discard(task)
            work.close()  # a task cancelled before its first step never started the coroutine
            self._at_work -= is_counted
            if self._queued and self._at_work < self.max_requests:
                self._begin(*self._queued.popleft())

        task.add_done_callback(ended)

    async def _run(self, work: Work, session: Session) -> None:
        try:
            try:
                outcome = await work
            except KafkaError as error:
                session.refuse(error)
            else:
                session.carry_out(outcome)
                session.pump()  # the next request need not wait if this one only waits for acks
        except ProtocolError as error:
            session.close(str(error))  # for example, the API has no field for the error
        except Exception as error:  # noqa: BLE001  the boundary, as in Session.pump
            session.end_after(error)

    async def close_idle(self) -> None:
        """Close connections that sent no request for `connections.max.idle.ms`, until cancelled."""
        while True:
            await asyncio.sleep(IDLE_CHECK_S)
            now_s = self._loop.time()
            self.close_those_idle_for(self._network.connections_max_idle_ms, now_s)
            self.close_late_unauthenticated(now_s)
            self.save_memory(now_s)

    def close_those_idle_for(self, max_idle_ms: int, now_s: float) -> None:
        """Close connections that are idle, that stopped reading their response, or that are
        throttled, as in Kafka: a quota may mute a connection for weeks, and a dead client would not
        be noticed. A negative limit, as in Kafka, is none.
        """
        if max_idle_ms < 0:
            return
        limit_s = now_s - max_idle_ms / 1000
        for session in [s for s in self.sessions if s.active_at < limit_s]:
            if session.is_sending or not session.has_work:
                session.close("idle for too long")

    def close_late_unauthenticated(self, now_s: float) -> None:
        """Close connections that did not finish their handshake or login in time."""
        for session in [each for each, end_s in self._unauthenticated.items() if end_s <= now_s]:
            session.close("did not authenticate in time")

    def save_memory(self, now_s: float) -> None:
        """Trim the buffers of idle connections; close slow senders if others wait for request
        memory.
        """
        has_waiting = self.memory.has_waiting
        for session in list(self.sessions):
            if session.active_at < now_s - TRIM_S and not session.is_busy:
                session.trim()
            if has_waiting and session.is_slow(now_s):
                session.close("sends its request too slowly, and others wait for the memory")

    def shed(self) -> bool:
        """Close the slowest reader among connections that hold log files open."""
        holding = [s for s in self.sessions if s.is_sending and s.holds_files]
        slowest = min(holding, key=lambda session: session.active_at, default=None)
        if slowest is None:
            return False
        logger.warning(
            "closing the connection of %s: the limit of open files is reached, and this client "
            "does not read its response",
            slowest.peer,
        )
        slowest.close("files are needed elsewhere")
        return True

    def close(self) -> None:
        for sock in self._listeners:
            self._loop.remove_reader(sock)
            sock.close()
        for sock in self._held:
            sock.close()
        for session in list(self.sessions):
            session.close("the broker stops")
        for work, _ in self._queued:
            work.close()
        self._queued.clear()
        for task in self._running:
            task.cancel()  # it may wait for something that stops earlier, such as the controller
