"""The owner's side: one tree, and the sessions of other processes on it.

A session is a node under `/penstock/sessions`, owned by itself like its other ephemeral nodes. So
sessions outlive their owner: the next one finds them in the file, and gives each its timeout to
come back. A connection that ends takes its session along, because nothing but the end of a process
closes a Unix socket. A process that hangs loses its session after the timeout.
"""

import asyncio
import logging
import socket
from collections.abc import Iterable
from contextlib import suppress
from random import Random

import msgspec

from penstock.clock import Clock
from penstock.errors import StorageError
from penstock.metadata import paths
from penstock.metadata.errors import NoNode, StoreError
from penstock.metadata.shared.connection import FrameConnection
from penstock.metadata.shared.messages import (
    Alive,
    Bye,
    Changed,
    Children,
    Done,
    Hello,
    Nodes,
    Read,
    Refused,
    Request,
    Response,
    Unwatch,
    Watch,
    Welcome,
    Write,
    decode_request,
    encode,
    results,
)
from penstock.metadata.shared.session_deadlines import SessionDeadlines
from penstock.metadata.store import NO_SESSION, Change, ChildrenChanged, Create, Node
from penstock.metadata.tree import Tree

SESSIONS = "/penstock/sessions"
CHECK_MS = 100
MAX_TIMEOUT_MS = 600_000

logger = logging.getLogger(__name__)


class _SessionRecord(msgspec.Struct, frozen=True):
    """The content of a session's node."""

    name: str
    timeout_ms: int


class StoreServer:
    """Serves a tree that was opened with `keep_sessions`. Belongs to the loop's thread, as the tree
    does: a sync may block the loop, since no broker runs on it.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, tree: Tree, clock: Clock, chance: Random
    ) -> None:
        self._loop, self._tree, self._clock, self._chance = loop, tree, clock, chance
        self._deadlines = SessionDeadlines(CHECK_MS, clock.monotonic_ms())
        self._names: dict[int, str] = {}
        self._connections: dict[int, _Connection] = {}
        """The connection of each session."""
        self._accepted: set[_Connection] = set()
        self._unended: set[int] = set()
        """Sessions whose end the disk has refused so far."""
        self._listening: list[socket.socket] = []
        self._find_sessions()
        tree.listeners.append(self._changed)
        self._next_check = loop.call_later(CHECK_MS / 1000, self._check)

    def listen(self, sock: socket.socket) -> None:
        self._listening.append(sock)
        self._loop.add_reader(sock, self._accept, sock)

    def close(self) -> None:
        """Leave the sessions in the file: they may come back."""
        self._next_check.cancel()
        self._tree.listeners.remove(self._changed)
        for sock in self._listening:
            self._loop.remove_reader(sock)
        for each in list(self._accepted):
            each.frames.close()

    async def until_unused(self, seconds: float) -> None:
        """Return when no process is connected any more, or after some time."""
        deadline = self._loop.time() + seconds
        while self._connections and self._loop.time() < deadline:
            await asyncio.sleep(CHECK_MS / 1000)

    def expire(self, session: int) -> None:
        """End a session whose process was silent for too long."""
        if session in self._deadlines and session not in self._unended:
            logger.warning("the session of %s has expired", self._names[session])
        self._end(session)

    def handle(self, request: Request, connection: "_Connection") -> Response | None:
        """The answer; None for a request without one."""
        match request:
            case Hello():
                return self._welcome(request, connection)
            case Alive():
                return Alive()
            case Read(wanted, children):
                return self._children(wanted) if children else self._nodes(wanted)
            case Write(multis):
                return results(self._tree.apply(connection.session, multis))
            case Watch(keys):
                for key in keys:
                    if isinstance(key, ChildrenChanged):
                        self._tree.get(key.path)
                connection.watched.update(keys)
                return Done()
            case Unwatch(keys):
                connection.watched.difference_update(keys)
                return None
            case Bye():
                self._deadlines.remove(connection.session)
                self._tree.end_session(connection.session)
                self._forget(connection.session)
                return Done()

    def renew_session(self, connection: "_Connection") -> None:
        self._deadlines.renew(connection.session, self._clock.monotonic_ms())

    def lost(self, connection: "_Connection") -> None:
        self._accepted.discard(connection)
        if self._connections.get(connection.session) is connection:
            self._end(connection.session)

    def _find_sessions(self) -> None:
        for path in paths.with_parents(SESSIONS):
            with suppress(StoreError):
                self._tree.apply(NO_SESSION, [[Create(path)]])
        for name in self._tree.children(SESSIONS):
            node = self._tree.get(f"{SESSIONS}/{name}")
            record = msgspec.json.decode(node.data or b"", type=_SessionRecord)
            self._names[node.ephemeral_owner] = record.name
            self._deadlines.add(node.ephemeral_owner, record.timeout_ms, self._clock.monotonic_ms())

    def _accept(self, listening: socket.socket) -> None:
        try:
            sock, _ = listening.accept()
        except OSError:
            return
        self._accepted.add(_Connection(self._loop, sock, self))

    def _welcome(self, hello: Hello, connection: "_Connection") -> Welcome:
        session = hello.session_id
        if session not in self._deadlines:
            session = self._open(hello)
        former = self._connections.get(session)
        if former is not None:  # no request that waits there may take effect after this
            self._accepted.discard(former)
            former.frames.close()
        connection.session = session
        connection.watched.update(hello.watched)
        self._connections[session] = connection
        return Welcome(session)

    def _open(self, hello: Hello) -> int:
        for other in [each for each, name in self._names.items() if name == hello.name]:
            self._end(other)
        session = self._chance.randrange(1, 1 << 62)
        timeout_ms = min(max(hello.timeout_ms, CHECK_MS), MAX_TIMEOUT_MS)
        record = msgspec.json.encode(_SessionRecord(hello.name, timeout_ms))
        node = Create(f"{SESSIONS}/{session:016x}", record, ephemeral=True)
        (answers,) = self._tree.apply(session, [[node]])
        if isinstance(answers, StoreError):
            raise answers
        self._names[session] = hello.name
        self._deadlines.add(session, timeout_ms, self._clock.monotonic_ms())
        return session

    def _end(self, session: int) -> None:
        """End a session: its nodes go at once. If the disk refuses that, `_check` tries again."""
        connection = self._connections.get(session)
        try:
            self._tree.end_session(session)
        except StorageError as error:
            if session not in self._unended:
                self._unended.add(session)
                logger.error(
                    "the session of %s cannot be ended yet: %s", self._names[session], error
                )
            self._deadlines.add(session, CHECK_MS, self._clock.monotonic_ms())
            return
        self._forget(session)
        if connection is not None:
            self._accepted.discard(connection)
            connection.frames.close()

    def _forget(self, session: int) -> None:
        self._deadlines.remove(session)
        self._connections.pop(session, None)
        self._names.pop(session, None)
        self._unended.discard(session)

    def _check(self) -> None:
        self._next_check = self._loop.call_later(CHECK_MS / 1000, self._check)
        for session in self._deadlines.passed(self._clock.monotonic_ms()):
            self.expire(session)

    def _changed(self, changes: Iterable[Change]) -> None:
        for connection in list(self._connections.values()):
            keys = tuple(each for each in changes if each in connection.watched)
            if keys:
                connection.send(Changed(keys))

    def _nodes(self, wanted: Iterable[str]) -> Nodes:
        found: list[Node] = []
        for path in wanted:
            with suppress(NoNode):
                found.append(self._tree.get(path))
        return Nodes(tuple(found))

    def _children(self, wanted: Iterable[str]) -> Children:
        found: dict[str, list[str]] = {}
        for path in wanted:
            with suppress(NoNode):
                found[path] = self._tree.children(path)
        return Children(found)


class _Connection:
    """One connected process; its session is 0 until its `Hello`."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, server: StoreServer
    ) -> None:
        self._server = server
        self.session = NO_SESSION
        self.watched: set[Change] = set()
        self.frames = FrameConnection(loop, sock, self._handle, lambda: server.lost(self))

    def send(self, response: Response) -> None:
        self.frames.send(encode(response))

    def _handle(self, frame: bytes) -> None:
        try:
            request = decode_request(frame)
            if self.session == NO_SESSION and not isinstance(request, Hello):
                raise msgspec.ValidationError(f"{type(request).__name__} before Hello")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.error("a process sent what the metadata store does not understand: %s", error)
            self.frames.close()
            self._server.lost(self)
            return
        self._server.renew_session(self)
        try:
            response = self._server.handle(request, self)
        except (StoreError, StorageError, ValueError) as error:
            response = Refused.of(error)
        if response is not None:
            self.send(response)
