"""The tree of the embedded store: one SQLite file, used by one thread.

An answered transaction is on disk (WAL with synchronous=FULL), and a process killed at any moment
leaves the last answered one. The sessions of a broker alone do not outlive the process: their
ephemeral nodes are deleted when the file is next opened. Sessions of other processes do
(`keep_sessions`).
"""

import fcntl
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from shlex import quote
from typing import IO, NamedTuple

from penstock.clock import Clock
from penstock.errors import ConfigError, StorageError
from penstock.metadata.errors import NoNode, StoreError
from penstock.metadata.schema import migrate
from penstock.metadata.store import Answer, Change, Node, Operation
from penstock.metadata.tree_transaction import SELECT_NODE, TreeTransaction, parent_of

DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

FILE_NAME = "metadata.sqlite"
"""Beside the partitions' directories: Kafka tolerates files in a log directory, but no other
directories.
"""


class TreeLocked(ConfigError):
    """Another process has the file open. Only one may write it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is in use by another process")


class SavedNode(NamedTuple):
    """A node with the number of children it has had, which numbers sequential nodes."""

    node: Node
    children_created: int


class Tree:
    """The nodes. `listeners` are called after each transaction that changed something, on the
    thread that owns the tree.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: Clock,
        lock: IO[bytes] | None = None,
        *,
        path: Path | None = None,
        keep_sessions: bool = False,
    ) -> None:
        self._connection, self._clock, self._lock = connection, clock, lock
        self._errors = _SqliteErrors(path)
        self.listeners: list[Callable[[Iterable[Change]], object]] = []
        with self._errors:
            migrate(connection)
            (zxid,) = connection.execute("SELECT zxid FROM store").fetchone()
            self._zxid: int = zxid
            if not keep_sessions:
                self._end_former_sessions()

    @classmethod
    def open(cls, path: Path, clock: Clock, *, keep_sessions: bool = False) -> "Tree":
        """The tree in this file, created if missing; `TreeLocked` if another process has it."""
        with _SqliteErrors(path), ExitStack() as undo:
            # A separate file: closing a second handle of the database would drop SQLite's locks.
            lock = undo.enter_context(path.with_name(f"{path.name}.lock").open("ab"))
            _acquire(lock, path)
            if not path.exists():  # it will have users' credentials; its log gets the same mode
                path.touch(mode=0o600)
            connection = undo.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            _make_durable(connection)
            tree = cls(connection, clock, lock, path=path, keep_sessions=keep_sessions)
            undo.pop_all()
            return tree

    @classmethod
    def in_memory(cls, clock: Clock) -> "Tree":
        """A tree without a file, for tests and simulations; they may open many sessions on it."""
        return cls(sqlite3.connect(":memory:", isolation_level=None), clock)

    def close(self) -> None:
        with self._errors:
            self._connection.close()
        if self._lock is not None:
            self._lock.close()

    def open_session(self) -> int:
        """A new session id. It needs no write: all nodes of the session will be written under a
        greater zxid.
        """
        self._zxid += 1
        return self._zxid

    def end_session(self, session: int) -> None:
        """Delete the session's ephemeral nodes."""
        with self._writing() as changes:
            transaction = self._begin(session)
            transaction.end_session(session)
            changes += self._applied(transaction)

    def get(self, path: str) -> Node:
        with self._errors:
            found = self._connection.execute(SELECT_NODE, (path,)).fetchall()
        if not found:
            raise NoNode(path)
        return Node(*found[0])

    def children(self, path: str) -> list[str]:
        with self._errors:
            found = self._connection.execute(
                "SELECT path FROM node WHERE parent = ? ORDER BY path", (path,)
            ).fetchall()
        if not found:
            self.get(path)
        return [child.rpartition("/")[2] for (child,) in found]

    def apply(
        self, session: int, multis: Iterable[Sequence[Operation]]
    ) -> list[list[Answer] | StoreError]:
        """Each multi succeeds or fails on its own; all that succeed share one sync."""
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
                    changes += self._applied(transaction)
                self._connection.execute("RELEASE multi")
        return answers

    def restore(self, zxid: int, nodes: Iterable[SavedNode]) -> None:
        """Restore a saved tree with its versions, zxids and numbering."""
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

    def _begin(self, session: int) -> TreeTransaction:
        return TreeTransaction(self._connection, session, self._zxid + 1, self._clock.now_ms())

    def _applied(self, transaction: TreeTransaction) -> list[Change]:
        if transaction.changes:
            self._zxid += 1
        return list(transaction.changes)

    @contextmanager
    def _writing(self) -> Iterator[list[Change]]:
        """One transaction of SQLite; the block adds its changes. Any error undoes all of it."""
        changes: list[Change] = []
        before = self._zxid
        with self._errors:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield changes
                if self._zxid != before:
                    self._connection.execute("UPDATE store SET zxid = ?", (self._zxid,))
                self._connection.execute("COMMIT")
            except BaseException:
                self._zxid = before
                if self._connection.in_transaction:  # a full disk ends it by itself
                    self._connection.execute("ROLLBACK")
                raise
        if changes:
            for listener in list(self.listeners):
                listener(changes)


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # macOS: flush the drive's cache too


def _acquire(lock: IO[bytes], path: Path) -> None:
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
    """Turns errors of SQLite into a `StorageError` that names the file, with advice if it is
    damaged.

    A class, because a generator would cost as much as the query inside.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError) and error.filename is not None:
            raise StorageError(f"{error.filename}: {error.strerror}") from error
        if isinstance(error, sqlite3.Error | OSError):
            name = "metadata store" if self._path is None else self._path
            advice = ""
            if self._path is not None and getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                home = quote(str(self._path.parent))
                advice = (
                    "; it is damaged: move it away, with the files that its name begins, and "
                    f"restore a backup (penstock metadata import --dir {home} FILE); "
                    "without one, the next start says how to register its topics again"
                )
            raise StorageError(f"{name}: {error}{advice}") from error
