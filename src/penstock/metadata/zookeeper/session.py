"""The thread that keeps a session with ZooKeeper: kazoo, with two of its decisions undone.

kazoo passes answers to one thread and watches to another, which loses their order. Here both are
passed on by the thread that read them, as are changes of the connection. kazoo also queues requests
while there is no connection, and sends them later, maybe in another session. Here such a request is
refused, because it was decided on an older state.
"""

import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeAlias

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import Callback, KeeperState

from penstock.config.connect_string import ConnectString

Request: TypeAlias = Any
"""One of `kazoo.protocol.serialization`, which has no types."""

FIRST_RETRY_S, LAST_RETRY_S = 0.02, 0.5
"""Kazoo's own delays grow to a minute, and a session would expire before it is resumed."""

_CLOSED = frozenset({KeeperState.CLOSED, KeeperState.EXPIRED_SESSION, KeeperState.AUTH_FAILED})

logger = logging.getLogger(__name__)
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.ERROR)  # it warns of each attempt; the store logs the changes


class SessionKey(NamedTuple):
    """With both, any process can resume the session or end it."""

    id: int
    password: bytes


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
    ) -> None:
        self._listener = listener
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
            handler=_InlineHandler(len(servers.servers)),
            connection_retry={
                "max_tries": -1,
                "delay": FIRST_RETRY_S,
                "max_jitter": 0.3,
                "max_delay": LAST_RETRY_S,
            },
            logger=_kazoo_logger,
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

    def _session_callback(self, state: str) -> None:
        """On the session's thread, at each change; from then on `submit` uses the new state."""
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


class _InlineHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """Has no threads but the session's: everything is passed on at once, in order.

    It never says that it is `running`, so that kazoo calls back instead of queueing.
    """

    def __init__(self, servers: int) -> None:
        super().__init__()
        self._servers = servers

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        """One server that drops packets must not use up the whole session's time."""
        return super().create_connection(*args, timeout=timeout / self._servers, **kwargs)

    def spawn(self, func: Callable[[], None], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(partial(_run_to_end, func), *args, **kwargs)


def in_random_order(servers: ConnectString) -> ConnectString:
    """The servers shuffled, so that brokers spread over them."""
    return replace(servers, servers=tuple(random.sample(servers.servers, len(servers.servers))))


def _run_to_end(session: Callable[[], None]) -> None:
    """Run kazoo's loop to its end. It dies on an answer that it does not understand."""
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
