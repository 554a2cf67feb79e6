"""The log directories of a single broker, as recorded in its metadata store.

In a cluster they are not recorded: a broker may return with an empty disk, and copies its replicas
from others.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from penstock.clock import Clock, SystemClock
from penstock.errors import ConfigError
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.records import decode, encode
from penstock.metadata.store import MetadataStore, Node
from penstock.metadata.tree import FILE_NAME, Tree

PATH = "/penstock/log_dirs"
VERSION = 1


class LogDirs(Struct, frozen=True):
    """The node's content: paths by `directory.id`."""

    version: int
    log_dirs: dict[str, str]


class _Version(Struct, frozen=True):
    version: int


async def read_known_log_dirs(store: MetadataStore) -> Mapping[str, str]:
    node = (await store.get_many((PATH,))).get(PATH)
    return {} if node is None else log_dirs_in(node)


def log_dirs_in(node: Node) -> Mapping[str, str]:
    """The recorded directories. The version is checked first: a newer Penstock may have changed the
    rest.
    """
    version = decode(_Version, node).version
    if version > VERSION:
        raise ConfigError(
            f"the metadata's {PATH} has version {version}, this Penstock knows up to "
            f"{VERSION}: start a newer Penstock"
        )
    return decode(LogDirs, node).log_dirs


async def write_known_log_dirs(store: MetadataStore, log_dirs: Mapping[str, str]) -> None:
    """Record the directories, if they have changed."""
    record = encode(LogDirs(VERSION, dict(log_dirs)))
    wanted = paths.with_parents(PATH)
    existing = await store.get_many(wanted)
    for path in wanted:
        if path not in existing:
            await store.create(path)
    if PATH not in existing or existing[PATH].data != record:
        await store.set(PATH, record)


async def forget(home: Path, lost: Collection[Path], clock: Clock | None = None) -> None:
    """Let the broker with the data directory `home` start without lost log directories.

    Partitions that no other directory holds begin empty at the next start. Refused while a broker
    runs there.
    """
    file = home / FILE_NAME
    if not file.exists():
        raise ConfigError(f"{file} is not there: name the broker's data directory with --dir")
    with closing(Tree.open(file, clock or SystemClock())) as tree:
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        known = await read_known_log_dirs(store)
        for path in map(str, lost):
            if path not in known.values():
                listed = ", ".join(sorted(known.values())) or "none"
                raise ConfigError(f"{path} is not a log directory of {file}; it has used: {listed}")
        gone = set(map(str, lost))
        await write_known_log_dirs(
            store, {key: path for key, path in known.items() if path not in gone}
        )
        await store.close()
