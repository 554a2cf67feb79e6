"""Backup and restore, and their refusals: targets in use, incomplete or damaged backups."""

import json
import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.broker.startup.known_log_dirs import PATH
from penstock.broker.startup.state_file import is_held
from penstock.cli.main import main
from penstock.clock import SystemClock
from penstock.errors import StorageError
from penstock.local.backup.manifest import VERSION
from penstock.metadata.backup import import_lines
from penstock.metadata.store import Create, Set
from penstock.metadata.tree import FILE_NAME, Tree


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory as a broker leaves it after a clean stop."""
    folder = tmp_path / "data"
    partition = folder / "logs" / "events-0"
    partition.mkdir(parents=True)
    known = json.dumps({"version": 1, "log_dirs": {"id": str(folder / "logs")}}).encode()
    with closing(Tree.open(folder / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Create("/penstock"), Create(PATH, known)]])
    (folder / "logs" / "meta.properties").write_text("version=0\n")
    (folder / "logs" / ".kafka_cleanshutdown").write_text("{}")
    (folder / "logs" / ".lock").touch()
    (partition / f"{0:020}.log").write_bytes(bytes(5000))
    (partition / f"{0:020}.index").write_bytes(bytes(16))
    (partition / f"{5:020}.log.deleted").touch()
    return folder


@pytest.fixture
def backup(data: Path, tmp_path: Path) -> Path:
    done = run("backup", tmp_path / "backup", "--dir", data)
    assert done.exit_code == 0, done.output
    return tmp_path / "backup"


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_the_files_needed_for_a_start_are_copied_readable_by_their_owner_only(backup: Path) -> None:
    logs = "logs/0"
    assert files(backup) == {
        "manifest.json",
        "metadata.jsonl",
        f"{logs}/meta.properties",
        f"{logs}/.kafka_cleanshutdown",
        f"{logs}/events-0/{0:020}.log",
        f"{logs}/events-0/{0:020}.index",
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in backup.rglob("*.*")} <= {0o600, 0o700}


def test_indexes_of_the_last_segment_are_left_to_recovery(data: Path, tmp_path: Path) -> None:
    (data / "logs" / ".kafka_cleanshutdown").unlink()
    assert run("backup", tmp_path / "b", "--dir", data).exit_code == 0
    assert f"logs/0/events-0/{0:020}.index" not in files(tmp_path / "b")


def test_a_backup_is_restored_into_new_folders(data: Path, backup: Path, tmp_path: Path) -> None:
    shutil.rmtree(data)
    done = run("restore", backup, "--dir", tmp_path / "new")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"restored; start it with: penstock serve --dir {tmp_path / 'new'}\n"
    assert (tmp_path / "new" / "logs" / "events-0" / f"{0:020}.log").read_bytes() == bytes(5000)
    with closing(Tree.open(tmp_path / "new" / FILE_NAME, SystemClock())) as tree:
        assert str(tmp_path / "new" / "logs").encode() in (tree.get(PATH).data or b"")


def refused(done: Result) -> str:
    assert done.exit_code == 2, done.output
    return done.stderr


def test_folders_that_are_not_empty_are_refused(data: Path, backup: Path) -> None:
    reported = refused(run("restore", backup, "--dir", data))
    assert "is not empty: name a new folder by --dir, or move this one away" in reported
    assert "is not empty" in refused(run("backup", backup, "--dir", data))


def test_an_interrupted_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    (backup / "manifest.json").unlink()
    reported = refused(run("restore", backup, "--dir", tmp_path / "new"))
    assert "is not a complete backup: it has no manifest.json" in reported


@pytest.mark.parametrize("name", ["metadata.jsonl", f"logs/0/events-0/{0:020}.log"])
def test_a_flipped_bit_is_detected(backup: Path, tmp_path: Path, name: str) -> None:
    content = bytearray((backup / name).read_bytes())
    content[20] ^= 1
    (backup / name).write_bytes(content)
    reported = refused(run("restore", backup, "--dry-run"))
    assert f"{name} is damaged" in reported
    assert f"{name} is damaged" in refused(run("restore", backup, "--dir", tmp_path / "new"))
    with pytest.raises(StorageError, match="is not a database"):  # no broker starts there
        Tree.open(tmp_path / "new" / FILE_NAME, SystemClock())


def test_a_backup_of_a_newer_penstock_is_refused(backup: Path) -> None:
    path = backup / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": VERSION + 1}))
    reported = refused(run("restore", backup, "--dry-run"))
    assert f"it has version {VERSION + 1}, this one knows up to {VERSION}" in reported


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("../outside", "outside of the backup"),
        ("/outside", "outside of the backup"),
        ("logs/0/nul\0", "outside of the backup"),
        ("", "of no log directory"),
        ("logs/0", "of no log directory"),
        ("logs/1/meta.properties", "of no log directory"),
        ("logs/\u00b2/meta.properties", "of no log directory"),  # a digit, but not a decimal one
        ("broker.json", "of no log directory"),
    ],
)
def test_a_manifest_with_an_impossible_file_name_is_refused(
    backup: Path, name: str, reported: str
) -> None:
    path = backup / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"][0]["path"] = name
    path.write_text(json.dumps(manifest))
    assert reported in refused(run("restore", backup, "--dry-run"))


def test_a_manifest_without_the_metadata_is_refused(backup: Path) -> None:
    path = backup / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = [each for each in manifest["files"] if each["path"] != "metadata.jsonl"]
    path.write_text(json.dumps(manifest))
    assert "names no metadata.jsonl" in refused(run("restore", backup, "--dry-run"))


def test_a_manifest_that_is_not_utf8_is_refused(backup: Path) -> None:
    (backup / "manifest.json").write_bytes(b'{"format": "\xff"}')
    assert "manifest.json is damaged" in refused(run("restore", backup, "--dry-run"))


def test_files_of_the_data_directory_are_not_copied_as_logs(data: Path, tmp_path: Path) -> None:
    """With `log.dirs` at the data directory, an old write-ahead log would undo the restore."""
    logs = data / "logs"
    own = ("broker.json", "broker.lock", "workers.json")
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}.lock", *own):
        (logs / name).write_bytes(b"x")
    assert run("backup", tmp_path / "b", "--dir", data).exit_code == 0
    assert files(tmp_path / "b") == {
        "manifest.json",
        "metadata.jsonl",
        "logs/0/meta.properties",
        "logs/0/.kafka_cleanshutdown",
        f"logs/0/events-0/{0:020}.log",
        f"logs/0/events-0/{0:020}.index",
    }


@pytest.mark.parametrize("inside", ["monday", "logs/monday-1", "."])
def test_a_backup_into_the_data_directory_is_refused(data: Path, inside: str) -> None:
    reported = refused(run("backup", data / inside, "--dir", data))
    assert "name a folder elsewhere" in reported
    assert not (data / "logs" / "monday-1").exists()


def test_a_backup_into_a_log_directory_is_refused(data: Path, tmp_path: Path) -> None:
    """`monday-1` would be a partition directory that the metadata does not know."""
    (data / "logs").rename(tmp_path / "elsewhere")
    known = json.dumps({"version": 1, "log_dirs": {"id": str(tmp_path / "elsewhere")}}).encode()
    with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Set(PATH, known)]])
    reported = refused(run("backup", tmp_path / "elsewhere" / "monday-1", "--dir", data))
    assert "is in the log directory" in reported
    assert not (tmp_path / "elsewhere" / "monday-1").exists()


def test_no_broker_starts_while_a_backup_is_restored(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []

    def look(path: Path, *rest: Any) -> int:
        held.append(is_held(tmp_path / "new"))
        return import_lines(path, *rest)

    monkeypatch.setattr("penstock.local.backup.restore.import_lines", look)
    assert run("restore", backup, "--dir", tmp_path / "new").exit_code == 0
    assert held == [True]
    assert not is_held(tmp_path / "new")


def test_a_different_number_of_log_directories_is_refused(backup: Path, tmp_path: Path) -> None:
    reported = refused(run("restore", backup, "--dir", tmp_path / "new", "--log-dirs", "a,b"))
    assert "--log-dirs names 2 directories; the broker had 1" in reported


def test_a_directory_without_metadata_cannot_be_backed_up(tmp_path: Path) -> None:
    reported = refused(run("backup", tmp_path / "b", "--dir", tmp_path))
    assert "a backup is of a single node" in reported


def test_a_write_ahead_log_that_could_not_be_cleared_is_kept(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = []

    def watched(path: Path, *rest: Any) -> int:
        nodes = import_lines(path, *rest)
        readers.append(sqlite3.connect(path, isolation_level=None))
        readers[0].execute("BEGIN")
        readers[0].execute("SELECT * FROM node").fetchall()
        return nodes

    monkeypatch.setattr("penstock.local.backup.restore.import_lines", watched)
    done = run("restore", backup, "--dir", tmp_path / "new")
    readers[0].close()
    assert done.exit_code == 1, done.output
    assert "could not be written back" in done.stderr


@pytest.mark.parametrize(
    ("record", "reported"),
    [
        (b'{"version": 2, "directories": []}', "has version 2, this Penstock knows up to 1"),
        (b'{"version": 1}', "does not hold what belongs there"),
        (b"\xff", "does not hold what belongs there"),
    ],
)
def test_log_directories_missing_from_the_metadata_are_refused(
    data: Path, tmp_path: Path, record: bytes, reported: str
) -> None:
    with closing(Tree.open(data / FILE_NAME, SystemClock())) as tree:
        tree.apply(tree.open_session(), [[Set(PATH, record)]])
    done = run("backup", tmp_path / "b", "--dir", data)
    assert done.exit_code in {1, 2}, done.output
    assert reported in done.stderr
    assert "internal error" not in done.stderr
