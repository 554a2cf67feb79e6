"""`penstock metadata` through click's runner, and the refusals of a backup."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from errno import ENOSPC
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.clock import SystemClock
from penstock.metadata import paths
from penstock.metadata.records import ProducerIdBlock, decode, encode
from penstock.metadata.schema import SCHEMA_VERSION
from penstock.metadata.store import Create, Set
from penstock.metadata.tree import FILE_NAME, Tree
from penstock.types import BrokerId, ProducerId


def run(*args: str | Path, given: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["metadata", *map(str, args)], input=given)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory whose store has seen text, bytes, null, numbering and a live session."""
    folder = tmp_path / "data"
    folder.mkdir()
    with closing(Tree.open(folder / FILE_NAME, SystemClock())) as tree:
        writes = [
            Create("/text", '{"a":"é"}'.encode()),
            Create("/raw", b"\xff\x00"),
            Create("/empty", b""),
            Create("/null"),
            Create("/null/n_", sequential=True),
            Create("/live", ephemeral=True),
        ]
        tree.apply(tree.open_session(), [writes, [Set("/text", b"new")], [Set("/raw", b"\xfe")]])
    return folder


def nodes(folder: Path) -> list[object]:
    with closing(Tree.open(folder / FILE_NAME, SystemClock())) as tree:
        return [
            tree.get(path) for path in ("/text", "/raw", "/empty", "/null", "/null/n_0000000000")
        ]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """Makes a folder look as on a read-only disk."""
    shown = tmp_path / "read-only"
    shown.mkdir()

    def show(folder: Path) -> Path:
        subprocess.run(["mount", "--bind", str(folder), str(shown)], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", str(shown)], check=True)
        return shown

    yield show
    subprocess.run(["umount", "--lazy", str(shown)], check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_read_only_disk_is_exported(
    data: Path, tmp_path: Path, read_only: Callable[[Path], Path], *, is_clean: bool
) -> None:
    """After a clean stop, and with a write-ahead log that a killed broker left."""
    expected = run("export", "--dir", data)
    if not is_clean:
        killed = tmp_path / "killed"
        with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
            tree.apply(tree.open_session(), [[Set("/text", b"newest")]])
            shutil.copytree(data, killed)
        (killed / f"{FILE_NAME}-shm").unlink()
        data, expected = killed, run("export", "--dir", data)
    shown = run("export", "--dir", read_only(data))
    assert (shown.exit_code, shown.stdout) == (0, expected.stdout)


def test_an_export_imports_to_the_same_tree(data: Path, tmp_path: Path) -> None:
    assert run("export", "--dir", data, tmp_path / "backup").exit_code == 0
    other = tmp_path / "new" / "folder"
    done = run("import", "--dir", other, tmp_path / "backup")
    assert (done.exit_code, done.stdout.split()[:3]) == (0, ["imported", "6", "nodes"])
    assert nodes(other) == nodes(data)
    assert run("export", "--dir", other).stdout == (tmp_path / "backup").read_text()
    with closing(Tree.open(other / FILE_NAME, SystemClock())) as tree:
        assert tree.children("/") == ["empty", "null", "raw", "text"]
        again = tree.apply(tree.open_session(), [[Create("/null/n_", sequential=True)]])
        assert again == [["/null/n_0000000001"]]
        newest = tree.get("/null/n_0000000001").created_zxid
        assert newest > tree.get("/raw").modified_zxid


@pytest.mark.parametrize("block", [None, "", "0", "later"])
def test_producer_ids_allocated_since_the_backup_are_not_reused(
    data: Path, tmp_path: Path, block: str | None
) -> None:
    """The logs contain these ids: records of a new owner would count as duplicates."""
    before_ms = SystemClock().now_ms()
    start = ProducerId(2 * before_ms if block == "later" else 0)
    last = encode(ProducerIdBlock.of(BrokerId(0), start, 1000)) if block else None
    given = b"no JSON" if block == "" else last
    path = paths.LATEST_PRODUCER_ID_BLOCK
    with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Create(path, given)]])
    backup = run("export", "--dir", data).stdout_bytes
    assert run("import", "--dir", tmp_path / "new", given=backup).exit_code == 0
    with closing(Tree.open(tmp_path / "new" / FILE_NAME, SystemClock())) as tree:
        found = decode(ProducerIdBlock, tree.get(path)).next_start()
    assert found == start + 1000 if block == "later" else found > before_ms


def test_a_running_broker_can_be_exported_but_not_imported_into(data: Path) -> None:
    with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Create("/fresh", b"1")]])
        lines = run("export", "--dir", data).stdout.splitlines()
        assert "/fresh" in [json.loads(line).get("path") for line in lines]
        refused = run("import", "--dir", data, given="\n".join(lines).encode())
    assert refused.exit_code == 2
    assert "in use by another process" in refused.stderr


def test_a_store_with_nodes_is_not_imported_into(data: Path) -> None:
    before = nodes(data)
    refused = run("import", "--dir", data, given=run("export", "--dir", data).stdout_bytes)
    assert refused.exit_code == 2
    assert "is not empty" in refused.stderr
    assert nodes(data) == before


def test_a_damaged_or_foreign_backup_is_an_error(data: Path, tmp_path: Path) -> None:
    whole = run("export", "--dir", data).stdout_bytes.splitlines()
    header = json.loads(whole[0])
    newer = json.dumps(header | {"schema_version": SCHEMA_VERSION + 1}).encode()
    without_parent = [json.dumps(header | {"nodes": 5}).encode(), *whole[1:3], *whole[4:]]
    cases = {
        "announced": whole[:-1],
        "was truncated": [*whole[:-1], whole[-1][:-5]],
        "not a backup": [],
        "its format is": [json.dumps(header | {"format": "other"}).encode(), *whole[1:]],
        "schema version": [newer, *whole[1:]],
        "has no parent": without_parent,
        "6 nodes are announced, 7 are there": [*whole, whole[1]],
        "it has a node twice": [*whole[:-1], whole[1]],
    }
    for says, lines in cases.items():
        refused = run("import", "--dir", tmp_path, given=b"\n".join(lines))
        assert refused.exit_code == 2
        assert says in refused.stderr
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("damage", ["missing", "no database", "full disk"])
def test_a_failed_export_keeps_the_previous_backup(
    data: Path, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = tmp_path / "backup"
    assert run("export", "--dir", data, backup).exit_code == 0
    before = backup.read_bytes()

    def full(path: Path) -> Iterator[bytes]:
        yield f"half of {path}".encode()
        raise OSError(ENOSPC, "No space left on device")

    match damage:
        case "missing":
            (data / FILE_NAME).unlink()
        case "no database":
            (data / FILE_NAME).write_bytes(b"\xff" * 5000)
        case _:
            monkeypatch.setattr("penstock.cli.metadata.export_lines", full)
    failed = run("export", "--dir", data, backup)
    assert failed.exit_code in {1, 2}
    assert backup.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup", "data"]


def test_an_export_to_a_symlink_replaces_its_target(data: Path, tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real")
    assert run("export", "--dir", data, link).exit_code == 0
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == run("export", "--dir", data).stdout


def test_an_export_to_a_pipe_writes_into_it(data: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("export", "--dir", data, pipe).exit_code == 0
        assert os.read(reader, 1 << 16) == run("export", "--dir", data).stdout_bytes
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_directory_without_metadata_has_no_backup(tmp_path: Path) -> None:
    refused = run("export", "--dir", tmp_path)
    assert refused.exit_code == 2
    assert "there is no" in refused.stderr


def test_store_and_export_are_readable_by_their_owner_only(data: Path, tmp_path: Path) -> None:
    """Both contain credentials of users."""
    with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Set("/text", b"")]])
        assert run("export", "--dir", data, tmp_path / "file").exit_code == 0
        written = [*data.glob(f"{FILE_NAME}*"), tmp_path / "file"]
        assert {path.name for path in written} >= {FILE_NAME, f"{FILE_NAME}-wal", "file"}
        modes = {each.name: each.stat().st_mode & 0o077 for each in written}
    del modes[f"{FILE_NAME}.lock"]  # empty
    assert set(modes.values()) == {0}, modes
