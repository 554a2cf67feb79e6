"""The tables of the embedded store, and the migration of older files.

A migration is never edited once released: a change of the tables is one more step.
"""

import sqlite3
from collections.abc import Sequence
from typing import TypeAlias

from penstock.errors import ConfigError

Migration: TypeAlias = tuple[str, ...]

MIGRATIONS: tuple[Migration, ...] = (
    (
        "CREATE TABLE store (schema_version INTEGER NOT NULL, zxid INTEGER NOT NULL)",
        "INSERT INTO store VALUES (0, 0)",
        """CREATE TABLE node (
            path TEXT PRIMARY KEY,
            parent TEXT,
            data BLOB,
            version INTEGER NOT NULL,
            created_zxid INTEGER NOT NULL,
            modified_zxid INTEGER NOT NULL,
            created_ms INTEGER NOT NULL,
            ephemeral_owner INTEGER NOT NULL,
            children_created INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX node_by_parent ON node (parent)",
        "CREATE INDEX node_by_owner ON node (ephemeral_owner) WHERE ephemeral_owner <> 0",
        "INSERT INTO node VALUES ('/', NULL, NULL, 0, 0, 0, 0, 0, 0)",
    ),
)
"""Step n migrates from schema version n to n + 1; a new file has version 0."""

SCHEMA_VERSION = len(MIGRATIONS)


class NewerSchema(ConfigError):
    """Written by a later version of Penstock, whose tables this one does not know."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the metadata has schema version {found}, this Penstock knows up to {known}: "
            "start a newer Penstock, or import a backup"
        )


def schema_version(connection: sqlite3.Connection) -> int:
    tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'store'"
    if connection.execute(tables).fetchone() == (0,):
        return 0
    (version,) = connection.execute("SELECT schema_version FROM store").fetchone()
    return int(version)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Update the tables in one transaction: after a crash the old ones are intact."""
    found = schema_version(connection)
    if found > len(migrations):
        raise NewerSchema(found, len(migrations))
    if found == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in migrations[found:]:
            for statement in step:
                connection.execute(statement)
        connection.execute("UPDATE store SET schema_version = ?", (len(migrations),))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise
