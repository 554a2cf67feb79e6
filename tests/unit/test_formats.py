"""Every format that Penstock writes has a version; newer ones are refused in one sentence."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from penstock.broker.startup import known_log_dirs
from penstock.clock import SystemClock
from penstock.errors import ConfigError
from penstock.local.backup import manifest
from penstock.local.cluster import FILE_NAME as CLUSTER
from penstock.local.cluster import LocalCluster
from penstock.local.workers import layout
from penstock.metadata.backup import import_lines
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.schema import SCHEMA_VERSION
from penstock.metadata.tree import FILE_NAME as STORE
from penstock.metadata.tree import Tree
from penstock.metadata.zookeeper import session_file
from penstock.retry.history import UnreadableState
from penstock.retry.progress import Bitmaps
from penstock.retry.store import sqlite
from penstock.sdk.parallel.saved import UnreadableProgress, from_metadata
from penstock.spark.connector import table_source, tail
from penstock.spark.connector.table_source import TableFollower
from penstock.spark.sink.epoch import MARKER_VERSION, EpochFailed, read_marker
from penstock.spark.source.share import share_offset

REFUSALS = (ConfigError, EpochFailed, UnreadableState, UnreadableProgress)
PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def metadata(folder: Path) -> None:
    Tree.open(folder / STORE, SystemClock()).close()
    with closing(sqlite3.connect(folder / STORE)) as file, file:
        file.execute("UPDATE store SET schema_version = ?", (SCHEMA_VERSION + 1,))
    Tree.open(folder / STORE, SystemClock())


def metadata_export(folder: Path) -> None:
    first = {"format": "penstock-metadata", "schema_version": SCHEMA_VERSION + 1}
    line = json.dumps({**first, "zxid": 1, "nodes": 0}).encode()
    import_lines(folder / STORE, [line], SystemClock())


def log_dirs_node(folder: Path) -> None:
    async def read() -> None:
        with closing(Tree.open(folder / STORE, SystemClock())) as tree:
            store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
            newer = {"version": known_log_dirs.VERSION + 1, "log_dirs": {}}
            await store.create("/penstock")
            await store.create(known_log_dirs.PATH, json.dumps(newer).encode())
            await known_log_dirs.read_known_log_dirs(store)

    asyncio.run(read())


def workers(folder: Path) -> None:
    newer = {"version": layout.VERSION + 1, "workers": "of another form"}
    (folder / layout.FILE_NAME).write_text(json.dumps(newer))
    layout.read_layout(folder)


def cluster(folder: Path) -> None:
    (folder / CLUSTER).write_text('{"plan": {"version": 2, "brokers": "of another form"}}')
    LocalCluster.find(folder)


def backup(folder: Path) -> None:
    newer = {"format": manifest.FORMAT, "version": manifest.VERSION + 1, "files": "others"}
    (folder / manifest.FILE_NAME).write_text(json.dumps(newer))
    manifest.read_manifest(folder)


def delay_index(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "index.sqlite")) as file:
        file.execute(f"PRAGMA user_version = {sqlite.VERSION + 1}")
    sqlite.SqliteIndex(folder / "index.sqlite")


def delay_state(_: Path) -> None:
    Bitmaps.decode(b"\x02")


def sink_marker(_: Path) -> None:
    read_marker(1, f"penstock-sink {MARKER_VERSION + 1} query/1")


def share_checkpoint(_: Path) -> None:
    newer = {"shareGroup": "g", "version": share_offset.VERSION + 1, "records": "of another form"}
    share_offset.share_offset(newer, "g")


def files_checkpoint(_: Path) -> None:
    tail.from_json({"version": tail.VERSION + 1, "1:2": "of another form"})


def table_checkpoint(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "db")) as file:
        file.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    follower = TableFollower(f"sqlite:///{folder / 'db'}", "t", "id")
    newer = {"version": table_source.VERSION + 1, "of": "another form"}
    follower.latestOffset(newer, follower.getDefaultReadLimit())


def parallel_progress(_: Path) -> None:
    from_metadata("p2:")


REFUSED: dict[str, Callable[[Path], None]] = {
    "`metadata.sqlite`": metadata,
    "`metadata export`": metadata_export,
    "`/penstock/log_dirs`": log_dirs_node,
    "`workers.json`": workers,
    "`cluster.json`": cluster,
    "`manifest.json`": backup,
    "`index.sqlite`": delay_index,
    "`__penstock_delay_state`, `__penstock_redrive_state`": delay_state,
    "`penstock-sink`, a group's metadata": sink_marker,
    "checkpoint with `shareGroup`": share_checkpoint,
    "checkpoint of `penstock_files`": files_checkpoint,
    "checkpoint of `penstock_table`": table_checkpoint,
    "`penstock-progress`, a group's metadata": parallel_progress,
}
NOT_REFUSED = {
    "`_schemas`",
    f"`{session_file.FILE_NAME}`",
    "`penstock_delay_*`, `penstock-delay:*`",
}
"""The first has Confluent's format; the second is optional; another format gets other names."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_newer_version_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(REFUSALS) as refused:
        REFUSED[name](tmp_path)
    assert re.search(r"newer|later version|version 2|p2", str(refused.value))


def test_the_page_lists_all_formats() -> None:
    rows = re.findall(r"(?m)^\| ((?:`|checkpoint)[^|]*?) \|", PAGE)
    assert set(rows) == REFUSED.keys() | NOT_REFUSED
