"""Which log directories belong to the metadata of a broker alone, as its store remembers them.

In a cluster nothing is remembered: a broker may come back with an empty disk, and copies from
others what it had.
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
from penstock.metadata.store import MetadataStore
from penstock.metadata.tree import FILE_NAME, Tree

PATH = "/penstock/log_dirs"


class LogDirs(Struct, frozen=True):
    """What the node holds: paths by `directory.id`."""

    version: int
    log_dirs: dict[str, str]


async def read_ties(store: MetadataStore) -> Mapping[str, str]:
    node = (await store.get_many((PATH,))).get(PATH)
    return {} if node is None else decode(LogDirs, node).log_dirs


async def write_ties(store: MetadataStore, log_dirs: Mapping[str, str]) -> None:
    """Written only if it is another than before."""
    record = encode(LogDirs(1, dict(log_dirs)))
    wanted = paths.with_parents(PATH)
    there = await store.get_many(wanted)
    for path in wanted:
        if path not in there:
            await store.create(path)
    if PATH not in there or there[PATH].data != record:
        await store.set(PATH, record)


async def forget(home: Path, lost: Collection[Path], clock: Clock | None = None) -> None:
    """Let the broker of the data directory `home` go on without directories that are lost.

    Their partitions begin empty at the next start. Refused while a broker runs there.
    """
    file = home / FILE_NAME
    if not file.exists():
        raise ConfigError(f"{file} is not there: name the broker's data directory with --dir")
    with closing(Tree.open(file, clock or SystemClock())) as tree:
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        ties = await read_ties(store)
        for path in map(str, lost):
            if path not in ties.values():
                known = ", ".join(sorted(ties.values())) or "none"
                raise ConfigError(f"{path} is no log directory of {file}; it has used: {known}")
        gone = set(map(str, lost))
        await write_ties(store, {key: path for key, path in ties.items() if path not in gone})
        await store.close()
