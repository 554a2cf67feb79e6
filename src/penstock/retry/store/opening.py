"""Opens the store that `penstock.delay.store` names."""

from pathlib import Path
from typing import Final

from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.retry.store.index import DueTimeIndex
from penstock.retry.store.sqlite import SqliteIndex

STORE: Final = "penstock.delay.store"
EMBEDDED: Final = "sqlite"
FILE: Final = "index.sqlite"
REDIS: Final = frozenset({"redis", "rediss", "unix"})
SQL: Final = frozenset({"postgresql", "mysql", "mariadb"})
HBASE: Final = "hbase"
FORMS: Final = "sqlite, sqlite:FILE, redis://…, postgresql://…, mysql://…, mariadb://… or hbase://…"


def open_store(store: str, folder: Path) -> DueTimeIndex:
    """Open the store of this URL; `sqlite` is a file in the folder. Drivers are imported late."""
    scheme, colon, rest = store.partition(":")
    kind, _, _ = scheme.partition("+")
    if kind == EMBEDDED and "+" not in scheme and not rest.startswith("//"):
        if colon and not rest:
            raise ConfigError(f"{STORE}: sqlite: needs the path of a file")
        return SqliteIndex(Path(rest)) if rest else SqliteIndex(folder / FILE, is_own=True)
    try:
        if scheme in REDIS:
            from penstock.retry.store.redis import RedisIndex

            return RedisIndex(store)
        if kind in SQL:
            from penstock.retry.store.sql import SqlIndex

            return SqlIndex(store)
        if kind == HBASE:
            from penstock.retry.store.hbase import HBaseIndex

            return HBaseIndex(store)
    except ImportError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise ConfigError(
            f"{STORE}: {scheme} needs the package {package}: {install('retry')}"
        ) from None
    except ConfigError as error:
        raise ConfigError(f"{STORE}: {error}") from None
    # A URL may have a password: show only its scheme.
    raise ConfigError(f"{STORE} must be {FORMS}, not {scheme[:20]!r}")
