"""The thread that keeps a session with ZooKeeper: kazoo, with two of its decisions undone.

kazoo passes answers to one thread and watches to another, which loses their order. Here both are
passed on by the thread that read them, as are changes of the connection. kazoo also queues requests
while there is no connection, and sends them later, maybe in another session. Here such a request is
refused, because it was decided on an older state.
"""

import logging
import random
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionDropped, KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionHandler
from kazoo.protocol.serialization import SASL
from kazoo.protocol.states import Callback, KeeperState

from penstock.config.connect_string import ConnectString
from penstock.metadata.zookeeper.digest_md5 import DigestLogin, LoginRefused

Request: TypeAlias = Any
"""One of `kazoo.protocol.serialization`, which has no types."""

FIRST_RETRY_S, LAST_RETRY_S = 0.02, 0.5
"""Kazoo's own delays grow to a minute, and a session would expire before it is resumed."""

_CLOSED = frozenset({KeeperState.CLOSED, KeeperState.EXPIRED_SESSION, KeeperState.AUTH_FAILED})

logger = logging.getLogger(__name__)
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.ERROR)  # it warns of each attempt; the store logs the changes


class SessionKey(NamedTuple):
    """The id and password of a session. With both, any process can resume the session or end it."""

    id: int
    password: bytes


@dataclass(frozen=True, slots=True)
class StoreSecurity:
    """The TLS context and the login for connections to ZooKeeper; None: without."""

    tls: ssl.SSLContext | None = None
    username: str | None = None
    password: str = field(default="", repr=False)


OPEN = StoreSecurity()


class SessionListener(Protocol):
    """Called on the session's thread at changes of the connection; it only passes them on."""

    def connected(self, connection: int, key: SessionKey) -> None: ...

    def disconnected(self) -> None: ...

    def expired(self) -> None: ...


class SessionThread(KazooClient):  # type: ignore[misc]
    """A session that reconnects by itself, and is followed by another when it has expired.

    Connections are numbered. `submit` names the connection that the caller knows, so that nothing
    decided under one connection is sent over the next.
    """

    def __init__(
        self,
        servers: ConnectString,
        timeout_ms: int,
        listener: SessionListener,
        former: SessionKey | None = None,
        security: StoreSecurity = OPEN,
    ) -> None:
        self._listener = listener
        self.security, self.is_logging_in = security, False
        self.refusal = ""
        """Why the last connection failed, if the login or TLS was the cause."""
        self._number = 0
        self._closed_by_server = False
        self._sending = Lock()
        super().__init__(
            hosts=in_random_order(servers).addresses,  # no chroot: requests have full paths
            # kazoo would shuffle in each round, and could spend the rest of the session's time on
            # the server that has just become silent. In a fixed order that server comes last.
            randomize_hosts=False,
            timeout=timeout_ms / 1000,
            client_id=former,
            handler=_InlineHandler(len(servers.servers), self),
            use_ssl=security.tls is not None,
            connection_retry={
                "max_tries": -1,
                "delay": FIRST_RETRY_S,
                "max_jitter": 0.3,
                "max_delay": LAST_RETRY_S,
            },
            logger=_kazoo_logger,
        )
        if security.username is not None:
            self._connection = _LoginConnection(
                self, self._conn_retry.copy(), logger=_kazoo_logger, sasl_options={}
            )

    def submit(self, connection: int, request: Request, answered: Callable[[object], None]) -> bool:
        """Send it; `answered` gets the answer or error on the session's thread. False: not sent."""
        with self._sending:
            if connection != self._number or self._state != KeeperState.CONNECTED:
                return False
            result = self.handler.async_result()
            result.rawlink(partial(_pass_on, answered))
            self._call(request, result)
        return True

    def end(self) -> bool:
        """Close the session and stop the thread. Blocks. False: no server has confirmed it, and the
        ephemeral nodes stay until the session expires.
        """
        try:
            self.stop()
            self.close()
        except KazooException as error:  # the thread hangs on a server; it is a daemon
            logger.warning("the session with ZooKeeper was not closed: %s", error)
        return self._closed_by_server

    def logged_in(self) -> None:
        """Report the connection, once logged in. Runs on the session's thread."""
        self.refusal = ""
        self._session_callback(KeeperState.CONNECTED)

    def _session_callback(self, state: str) -> None:
        """Runs on the session's thread, at each change; then `submit` uses the new state."""
        if state == KeeperState.CONNECTED and self.is_logging_in:
            return  # kazoo says so before the login
        with self._sending:
            before = self._state
            if state == before:
                return
            # Report the loss before kazoo fails the requests in flight: the cause comes first.
            if state in _CLOSED:
                self._closed_by_server = before == KeeperState.CONNECTED
                self._listener.expired()
            elif before == KeeperState.CONNECTED:
                self._listener.disconnected()
            super()._session_callback(state)
            if state == KeeperState.CONNECTED:
                self._number += 1
        if state == KeeperState.CONNECTED:
            key = SessionKey(self._session_id, self._session_passwd)
            self._listener.connected(self._number, key)


class _LoginConnection(ConnectionHandler):  # type: ignore[misc]
    """Logs in by DIGEST-MD5 before the session counts as connected.

    ZooKeeper drops the connection after a wrong password, and so does a server that stops. kazoo
    would then end the session for ever; here it connects again.
    """

    def _connect(self, host: str, hostip: str, port: int) -> Any:
        self.client.is_logging_in = True
        try:
            timeouts = super()._connect(host, hostip, port)
        finally:
            self.client.is_logging_in = False
        self.client.logged_in()
        return timeouts

    def _authenticate_with_sasl(self, host: str, timeout: float) -> None:  # noqa: ARG002
        security = self.client.security
        login = DigestLogin(security.username, security.password, secrets.token_hex(16))
        try:
            challenge = self._exchanged(b"", 1, timeout)
            login.check(self._exchanged(login.answer(challenge), 2, timeout))
        except (LoginRefused, AuthFailedError, ConnectionDropped) as error:
            text = f": {error}" if isinstance(error, LoginRefused) else ""
            self.client.refusal = f"it refuses the login of {security.username!r}{text}"
            raise ConnectionDropped(self.client.refusal) from None

    def _exchanged(self, token: bytes, xid: int, timeout: float) -> bytes:
        self._submit(SASL(token), timeout, xid)
        header, buffer, offset = self._read_header(timeout)
        if header.err or header.xid != xid:
            raise ConnectionDropped(f"error {header.err}")
        answer, _ = SASL.deserialize(buffer, offset)
        return bytes(answer or b"")


class _InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Has no threads but the session's: everything is passed on at once, in order.

    It never says that it is `running`, so that kazoo calls back instead of queueing.
    """

    def __init__(self, servers: int, session: SessionThread) -> None:
        super().__init__()
        self._servers, self._session = servers, session

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        """One server that drops packets must not use up the whole session's time."""
        tls = self._session.security.tls
        if tls is None:
            return super().create_connection(*args, timeout=timeout / self._servers, **kwargs)
        address, hostname = kwargs["address"], kwargs["hostname"]
        sock = socket.create_connection(address, timeout / self._servers)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return tls.wrap_socket(sock, server_hostname=hostname)
        except ssl.SSLError as error:
            sock.close()
            self._session.refusal = f"TLS: {str(error.reason or error).lower().replace('_', ' ')}"
            raise ConnectionDropped(self._session.refusal) from None
        except OSError:
            sock.close()
            raise

    def spawn(self, func: Callable[[], None], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(partial(_run_to_end, func), *args, **kwargs)


def in_random_order(servers: ConnectString) -> ConnectString:
    """The servers shuffled, so that brokers spread over them."""
    return replace(servers, servers=tuple(random.sample(servers.servers, len(servers.servers))))


def _run_to_end(session: Callable[[], None]) -> None:
    """Run kazoo's loop to its end, again if it dies on an answer that it does not understand."""
    while True:
        try:
            session()
        except Exception:
            logger.exception("the session with ZooKeeper failed; starting another")
            time.sleep(LAST_RETRY_S)
        else:
            return


def _pass_on(answered: Callable[[object], None], result: Any) -> None:
    answered(result.value if result.exception is None else result.exception)
