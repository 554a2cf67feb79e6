"""The tree of the embedded store: one SQLite file, in plain calls of one thread.

A transaction that was answered is on the disk (WAL with synchronous=FULL), and a process killed
at any moment leaves the last one that was. Sessions do not outlive the process: what they owned
goes when the file is next opened.
"""

import fcntl
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from penstock.clock import Clock
from penstock.errors import ConfigError, StorageError
from penstock.metadata.refusal import NoNode, StoreError
from penstock.metadata.schema import migrate
from penstock.metadata.store import Answer, Change, Node, Operation
from penstock.metadata.transaction import SELECT_NODE, Transaction, parent_of

FILE_NAME = "metadata.sqlite"
"""Beside the topics' directories: a log directory of Kafka's may hold files, only not others'
directories.
"""


class TreeLocked(ConfigError):
    """Another process has the file open, and one only may write it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is in use by another process")


class SavedNode(NamedTuple):
    """A node with what only the tree itself needs: how many children it has had."""

    node: Node
    children_created: int


class Tree:
    """The nodes. `listeners` are called after each transaction that changed something, in the
    thread that owns the tree.
    """

    def __init__(
        self, connection: sqlite3.Connection, clock: Clock, lock: IO[bytes] | None = None
    ) -> None:
        self._connection, self._clock, self._lock = connection, clock, lock
        self.listeners: list[Callable[[Iterable[Change]], object]] = []
        with _as_storage_error:
            migrate(connection)
            (zxid,) = connection.execute("SELECT zxid FROM store").fetchone()
            self._zxid: int = zxid
            self._end_former_sessions()

    @classmethod
    def open(cls, path: Path, clock: Clock) -> "Tree":
        """The tree in this file, which is made if need be; `TreeLocked` if somebody has it."""
        with _as_storage_error, ExitStack() as undo:
            # A file of its own: closing the database file a second time would drop SQLite's locks.
            lock = undo.enter_context(path.with_name(f"{path.name}.lock").open("ab"))
            _take(lock, path)
            connection = undo.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            _make_durable(connection)
            tree = cls(connection, clock, lock)
            undo.pop_all()
            return tree

    @classmethod
    def in_memory(cls, clock: Clock) -> "Tree":
        """Gone with the process: for tests and simulations, which may open many sessions on it."""
        return cls(sqlite3.connect(":memory:", isolation_level=None), clock)

    def close(self) -> None:
        with _as_storage_error:
            self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def open_session(self) -> int:
        """An id that no session had before. It needs no write: whatever the session owns will
        be written under a greater zxid.
        """
        self._zxid += 1
        return self._zxid

    def end_session(self, session: int) -> None:
        """Delete what the session owned."""
        with self._writing() as changes:
            transaction = self._begin(session)
            transaction.end_session(session)
            changes += self._kept(transaction)

    def get(self, path: str) -> Node:
        with _as_storage_error:
            found = self._connection.execute(SELECT_NODE, (path,)).fetchall()
        if not found:
            raise NoNode(path)
        return Node(*found[0])

    def children(self, path: str) -> list[str]:
        with _as_storage_error:
            found = self._connection.execute(
                "SELECT path FROM node WHERE parent = ? ORDER BY path", (path,)
            ).fetchall()
        if not found:
            self.get(path)
        return [child.rpartition("/")[2] for (child,) in found]

    def apply(
        self, session: int, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        """Each multi holds or fails on its own; all that hold reach the disk with one sync."""
        answers: list[list[Answer] | StoreError] = []
        with self._writing() as changes:
            for operations in multis:
                transaction = self._begin(session)
                self._connection.execute("SAVEPOINT multi")
                try:
                    answers.append(transaction.apply(operations))
                except StoreError as error:
                    self._connection.execute("ROLLBACK TO multi")
                    answers.append(error)
                else:
                    changes += self._kept(transaction)
                self._connection.execute("RELEASE multi")
        return answers

    def restore(self, zxid: int, nodes: Iterable[SavedNode]) -> None:
        """Be as a tree was when it was saved: versions, zxids and numbering included."""
        with self._writing():
            self._connection.execute("DELETE FROM node")
            self._connection.executemany(
                "INSERT INTO node VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?)", map(_row, nodes)
            )
            self._zxid = zxid

    def _end_former_sessions(self) -> None:
        owners = self._connection.execute(
            "SELECT DISTINCT ephemeral_owner FROM node WHERE ephemeral_owner <> 0"
        ).fetchall()
        for (session,) in owners:
            self.end_session(session)

    def _begin(self, session: int) -> Transaction:
        return Transaction(self._connection, session, self._zxid + 1, self._clock.now_ms())

    def _kept(self, transaction: Transaction) -> list[Change]:
        if transaction.changes:
            self._zxid += 1
        return list(transaction.changes)

    @contextmanager
    def _writing(self) -> Iterator[list[Change]]:
        """One transaction of SQLite's; the block says what changed. Any error undoes it all."""
        changes: list[Change] = []
        before = self._zxid
        with _as_storage_error:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield changes
                if self._zxid != before:
                    self._connection.execute("UPDATE store SET zxid = ?", (self._zxid,))
                self._connection.execute("COMMIT")
            except BaseException:
                self._zxid = before
                if self._connection.in_transaction:  # a full disk has ended it already
                    self._connection.execute("ROLLBACK")
                raise
        if changes:
            for listener in list(self.listeners):
                listener(changes)


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: through the drive's cache as well


def _take(lock: IO[bytes], path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TreeLocked(path) from None


def _row(saved: SavedNode) -> tuple[object, ...]:
    node = saved.node
    parent = None if node.path == "/" else parent_of(node.path)
    return (
        node.path,
        parent,
        node.data,
        node.version,
        node.created_zxid,
        node.modified_zxid,
        node.created_ms,
        saved.children_created,
    )


class _SqliteErrors:
    """A class, because a generator would cost as much as the query that it guards."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.Error | OSError):
            raise StorageError(f"metadata store: {error}") from error


_as_storage_error = _SqliteErrors()
