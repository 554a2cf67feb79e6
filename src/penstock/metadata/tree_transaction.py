"""Operations on the tables of the embedded store, and the changes they cause."""

import sqlite3
from collections.abc import Sequence

from penstock.metadata.errors import (
    BadVersion,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    StoreError,
)
from penstock.metadata.store import (
    ANY_VERSION,
    NO_SESSION,
    Answer,
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    Delete,
    Node,
    Operation,
    Set,
)

SELECT_NODE = """
    SELECT path, data, version, created_zxid, modified_zxid, created_ms, ephemeral_owner
    FROM node WHERE path = ?
"""
"""Selects the fields of `Node`, in its order."""


def parent_of(path: str) -> str:
    """The parent of any path but the root. `ValueError` for an invalid path, which is a bug."""
    parts = path.split("/")
    if parts[0] or len(parts) < 2 or any(part in {"", ".", ".."} for part in parts[1:]):
        raise ValueError(f"{path!r} is not the path of a node")
    return "/".join(parts[:-1]) or "/"


class TreeTransaction:
    """Operations of one session under one zxid. The caller begins, commits and rolls back."""

    def __init__(
        self, connection: sqlite3.Connection, session: int, zxid: int, now_ms: int
    ) -> None:
        self._execute = connection.execute
        self._children_created: dict[str, int] = {}
        self._session, self._zxid, self._now_ms = session, zxid, now_ms
        self.changes: dict[Change, None] = {}
        """The changes in order and without duplicates; a set would lose the order."""

    def apply(self, operations: Sequence[Operation]) -> list[Answer]:
        answers = []
        for index, operation in enumerate(operations):
            try:
                answers.append(self._apply(operation))
            except StoreError as error:
                raise error.at(index) from None
        self._write_numbering()
        return answers

    def end_session(self, session: int) -> None:
        """Delete the session's ephemeral nodes."""
        owned = "SELECT path FROM node WHERE ephemeral_owner = ? AND ephemeral_owner <> 0"
        for (path,) in self._execute(owned, (session,)).fetchall():
            self._delete(Delete(path))

    def _apply(self, operation: Operation) -> Answer:
        match operation:
            case Check(path, version):
                self._expected(path, version)
                return None
            case Create():
                return self._create(operation)
            case Set():
                return self._set(operation)
            case Delete():
                self._delete(operation)
                return None

    def _create(self, create: Create) -> str:
        path = create.path
        # Check the path of a sequential node with a digit: the prefix may end in a slash.
        parent = parent_of(f"{path}0" if create.sequential else path)
        number = self._next_number(path, parent)
        if create.sequential:
            path = f"{path}{number:010d}"
        session = self._session if create.ephemeral else NO_SESSION
        row = (path, parent, create.data, self._zxid, self._zxid, self._now_ms, session)
        try:
            self._execute("INSERT INTO node VALUES (?, ?, ?, 0, ?, ?, ?, ?, 0)", row)
        except sqlite3.IntegrityError:
            raise NodeExists(path) from None
        self._changed(DataChanged(path), ChildrenChanged(parent))
        return path

    def _next_number(self, path: str, parent: str) -> int:
        """The number of children the parent has had. It is written at the end, once per parent."""
        number = self._children_created.get(parent)
        if number is None:
            found = self._execute(
                "SELECT children_created, ephemeral_owner FROM node WHERE path = ?", (parent,)
            ).fetchall()
            if not found:
                raise NoNode(path)
            ((number, owner),) = found
            if owner != NO_SESSION:
                raise EphemeralParent(path)
        self._children_created[parent] = number + 1
        return int(number)

    def _write_numbering(self) -> None:
        for parent, number in self._children_created.items():
            self._execute("UPDATE node SET children_created = ? WHERE path = ?", (number, parent))

    def _set(self, change: Set) -> Node:
        node = self._expected(change.path, change.version)
        version = node.version + 1
        self._execute(
            "UPDATE node SET data = ?, version = ?, modified_zxid = ? WHERE path = ?",
            (change.data, version, self._zxid, node.path),
        )
        self._changed(DataChanged(node.path))
        return Node(
            node.path,
            change.data,
            version,
            node.created_zxid,
            self._zxid,
            node.created_ms,
            node.ephemeral_owner,
        )

    def _delete(self, delete: Delete) -> None:
        path, parent = delete.path, parent_of(delete.path)
        self._expected(path, delete.version)
        if self._execute("SELECT 1 FROM node WHERE parent = ? LIMIT 1", (path,)).fetchall():
            raise NotEmpty(path)
        self._execute("DELETE FROM node WHERE path = ?", (path,))
        self._children_created.pop(path, None)
        self._changed(DataChanged(path), ChildrenChanged(path), ChildrenChanged(parent))

    def _expected(self, path: str, version: int) -> Node:
        found = self._execute(SELECT_NODE, (path,)).fetchall()
        if not found:
            raise NoNode(path)
        node = Node(*found[0])
        if version not in {ANY_VERSION, node.version}:
            raise BadVersion(path)
        return node

    def _changed(self, *changes: Change) -> None:
        self.changes.update(dict.fromkeys(changes))
