"""The thread that keeps a session with ZooKeeper: kazoo, without what it decides for its users.

kazoo hands answers to one thread and watches to another, so that their order is lost; here both
are handed over on the thread that read them, as are changes of the connection. kazoo also keeps
what is asked of it without a connection and sends it later, maybe in another session: here such
a request is refused, since whoever decided on it knew another state of the world.
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
"""Kazoo's own delays grow to a minute: a session would be over before it is taken up again."""

_CLOSED = frozenset({KeeperState.CLOSED, KeeperState.EXPIRED_SESSION, KeeperState.AUTH_FAILED})

logger = logging.getLogger(__name__)
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.ERROR)  # it warns of each attempt; the store tells what changed


class SessionKey(NamedTuple):
    """With both, any process may take the session up, or end it."""

    id: int
    password: bytes


class Listener(Protocol):
    """Hears of the connection. Called on the session's thread, so it only passes things on."""

    def connected(self, connection: int, key: SessionKey) -> None: ...

    def disconnected(self) -> None: ...

    def expired(self) -> None: ...


class SessionThread(KazooClient):  # type: ignore[misc]
    """A session that is taken up again by itself, and followed by another when it has expired.

    Connections are numbered. `submit` names the one that the caller knows of, so that nothing
    decided under one connection is sent over the next.
    """

    def __init__(
        self,
        where: ConnectString,
        timeout_ms: int,
        listener: Listener,
        former: SessionKey | None = None,
    ) -> None:
        self._listener = listener
        self._number = 0
        self._closed_by_server = False
        self._sending = Lock()
        super().__init__(
            hosts=in_random_order(where).addresses,  # no chroot: requests bring whole paths
            # kazoo would draw anew in each round, and could lose the rest of the session's time
            # on the server that has just fallen silent: in a fixed order it comes last.
            randomize_hosts=False,
            timeout=timeout_ms / 1000,
            client_id=former,
            handler=_InlineHandler(len(where.servers)),
            connection_retry={
                "max_tries": -1,
                "delay": FIRST_RETRY_S,
                "max_jitter": 0.3,
                "max_delay": LAST_RETRY_S,
            },
            logger=_kazoo_logger,
        )

    def submit(self, connection: int, request: Request, answered: Callable[[object], None]) -> bool:
        """Send it; the answer or the error is told on the session's thread. False: not sent."""
        with self._sending:
            if connection != self._number or self._state != KeeperState.CONNECTED:
                return False
            result = self.handler.async_result()
            result.rawlink(partial(_tell_outcome, answered))
            self._call(request, result)
        return True

    def end(self) -> bool:
        """Close the session and stop the thread. Blocks. False: no server has said that it is
        closed, and what it owns stays until it expires.
        """
        try:
            self.stop()
            self.close()
        except KazooException as error:  # it hangs on a server; being a daemon, it may
            logger.warning("the session with ZooKeeper was not closed: %s", error)
        return self._closed_by_server

    def _session_callback(self, state: str) -> None:
        """On the session's thread, at each change; from then on `submit` goes by the new state."""
        with self._sending:
            before = self._state
            if state == before:
                return
            # A loss is told before kazoo fails what was on its way: first the cause.
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
    """Has no threads but the session's: what comes is handed over at once, in order.

    It never says that it is `running`, which makes kazoo call back instead of queueing.
    """

    def __init__(self, servers: int) -> None:
        super().__init__()
        self._servers = servers

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def dispatch_callback(self, callback: Callback) -> None:
        callback.func(*callback.args)

    def create_connection(self, *args: Any, timeout: float, **kwargs: Any) -> Any:
        """One server that swallows packets must not use up the whole session's time."""
        return super().create_connection(*args, timeout=timeout / self._servers, **kwargs)

    def spawn(self, func: Callable[[], None], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(partial(_kept_up, func), *args, **kwargs)


def in_random_order(where: ConnectString) -> ConnectString:
    """So that brokers spread over the servers."""
    return replace(where, servers=tuple(random.sample(where.servers, len(where.servers))))


def _kept_up(session: Callable[[], None]) -> None:
    """Run kazoo's loop to its end. On an answer that makes no sense to it, it would just die."""
    while True:
        try:
            session()
        except Exception:
            logger.exception("the session with ZooKeeper failed; another begins")
            time.sleep(LAST_RETRY_S)
        else:
            return


def _tell_outcome(answered: Callable[[object], None], result: Any) -> None:
    answered(result.value if result.exception is None else result.exception)
