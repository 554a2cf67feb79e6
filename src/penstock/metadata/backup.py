"""Export and import of the embedded store's tree as lines of JSON, with all versions and zxids.

The first line names the format and the number of nodes, so that a truncated file is recognized.
Ephemeral nodes are left out, because no session outlives a backup.
"""

import os
import shutil
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from penstock.clock import Clock
from penstock.errors import ConfigError, StorageError
from penstock.metadata import paths
from penstock.metadata.lost_producer_ids import beyond_lost
from penstock.metadata.schema import SCHEMA_VERSION, NewerSchema, schema_version
from penstock.metadata.store import Node
from penstock.metadata.tree import SavedNode, Tree
from penstock.metadata.tree_transaction import parent_of
from penstock.types import BrokerId

FORMAT = "penstock-metadata"
UNKNOWN_BROKER = BrokerId(-1)


class BackupHeader(Struct, frozen=True, kw_only=True):
    """The first line."""

    format: str
    schema_version: int
    zxid: int
    nodes: int


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. Its data is text, or base64 if it is not UTF-8; without either it is null."""

    path: str
    text: str | None = None
    base64: str | None = None
    version: int
    created_zxid: int
    modified_zxid: int
    created_ms: int
    children_created: int


class BadBackup(ConfigError):
    """The input is not a complete backup."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not a backup of Penstock's metadata: {what}")


def export_lines(path: Path) -> Iterator[bytes]:
    """The tree in the file at `path`, as of one moment; a broker may be using it."""
    if not path.exists():
        raise ConfigError(f"there is no {path}")
    try:
        with _readable(path) as file, closing(_opened(file)) as connection:
            yield from _exported(connection, path)
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error


def _opened(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("BEGIN")
    return connection


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """The file itself, or a copy if its disk is read-only.

    While it reads, SQLite keeps an index of the write-ahead log beside the file. No broker writes
    to a read-only disk meanwhile.
    """
    if os.access(path.parent, os.W_OK):
        yield path
        return
    with TemporaryDirectory(prefix="penstock-") as folder:
        for name in (path.name, f"{path.name}-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(path.with_name(name), Path(folder) / name)
        yield Path(folder) / path.name


def import_lines(path: Path, lines: Iterable[bytes], clock: Clock) -> int:
    """Import into the file at `path`, new or empty, in a folder that is made if it is missing;
    returns the number of nodes.

    Producer ids that were allocated since the backup are not allocated again.
    """
    header, nodes = _parsed(lines)
    nodes = [_beyond_lost_ids(each, clock.now_ms()) for each in nodes]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--dir {path.parent}: {error.strerror}") from None
    with closing(Tree.open(path, clock)) as tree:
        if tree.children("/"):
            raise ConfigError(f"{path} is not empty: a backup is imported into an empty store only")
        tree.restore(header.zxid, nodes)
    return len(nodes)


def _beyond_lost_ids(saved: SavedNode, now_ms: int) -> SavedNode:
    if saved.node.path != paths.LATEST_PRODUCER_ID_BLOCK:
        return saved
    data = beyond_lost(saved.node, UNKNOWN_BROKER, now_ms)
    return saved._replace(node=replace(saved.node, data=data))


def _exported(connection: sqlite3.Connection, path: Path) -> Iterator[bytes]:
    found = schema_version(connection)
    if found > SCHEMA_VERSION:
        raise NewerSchema(found, SCHEMA_VERSION)
    if found < SCHEMA_VERSION:
        raise ConfigError(f"{path} is of an older Penstock: start a broker on it once")
    (zxid,) = connection.execute("SELECT zxid FROM store").fetchone()
    rows = connection.execute(
        "SELECT path, data, version, created_zxid, modified_zxid, created_ms, children_created"
        " FROM node WHERE ephemeral_owner = 0 ORDER BY path"
    ).fetchall()
    yield msgspec.json.encode(
        BackupHeader(format=FORMAT, schema_version=found, zxid=zxid, nodes=len(rows))
    )
    for node_path, data, version, created, modified, created_ms, children_created in rows:
        text, base64 = _spelled(data)
        yield msgspec.json.encode(
            Line(
                path=node_path,
                text=text,
                base64=base64,
                version=version,
                created_zxid=created,
                modified_zxid=modified,
                created_ms=created_ms,
                children_created=children_created,
            )
        )


def _spelled(data: bytes | None) -> tuple[str | None, str | None]:
    if data is None:
        return None, None
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, b64encode(data).decode()


def _parsed(lines: Iterable[bytes]) -> tuple[BackupHeader, list[SavedNode]]:
    given = iter(lines)
    try:
        header = msgspec.json.decode(next(given, b""), type=BackupHeader)
        if header.format != FORMAT:
            raise BadBackup(f"its format is {header.format!r}")
        if header.schema_version > SCHEMA_VERSION:
            raise NewerSchema(header.schema_version, SCHEMA_VERSION)
        nodes = [saved_node(line) for line in given]
        known = {saved.node.path for saved in nodes}
        orphans = [path for path in known - {"/"} if parent_of(path) not in known]
    except (msgspec.DecodeError, ValueError) as error:
        raise BadBackup(str(error)) from error
    if len(nodes) != header.nodes:
        raise BadBackup(f"{header.nodes} nodes are announced, {len(nodes)} are there")
    if len(known) != len(nodes):
        raise BadBackup("it has a node twice")
    if orphans or "/" not in known:
        raise BadBackup(f"{min(orphans, default='/')} has no parent")
    return header, nodes


def saved_node(encoded: bytes) -> SavedNode:
    """The node of any line but the first."""
    line = msgspec.json.decode(encoded, type=Line)
    data = line.text.encode() if line.text is not None else None
    if line.base64 is not None:
        data = b64decode(line.base64, validate=True)
    node = Node(
        line.path, data, line.version, line.created_zxid, line.modified_zxid, line.created_ms
    )
    return SavedNode(node, line.children_created)
