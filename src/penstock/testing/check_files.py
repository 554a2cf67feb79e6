"""The contract of `penstock.log.files.Files`: run it on every implementation."""

import errno
from collections.abc import Callable
from pathlib import Path

from penstock.errors import StorageError
from penstock.log.files import DirectoryLocked, Files, remove_flat_dir, replace


def check_files(make: Callable[[], tuple[Files, Path]]) -> None:
    """Run every check; each call of `make` returns a file system and an empty directory."""
    for check in CHECKS:
        files, root = make()
        check(files, root)


def error_text(family: type[Exception], attempt: Callable[[], object]) -> str:
    """The text of the error that `attempt` must raise."""
    try:
        attempt()
    except family as error:
        return str(error)
    raise AssertionError(f"no {family.__name__}")


def _appends_and_reads(files: Files, root: Path) -> None:
    file = files.open(root / "a", create=True)
    file.append(b"hello ")
    file.append(memoryview(bytearray(b"world")))
    assert file.size == files.size(root / "a") == 11
    assert file.read(0, 11) == files.read(root / "a") == b"hello world"
    assert file.read(6, 100) == b"world"
    assert file.read(11, 1) == b""
    file.sync()
    file.close()
    assert files.open(root / "a").size == 11


def _writes_in_place(files: Files, root: Path) -> None:
    file = files.open(root / "a", create=True)
    file.append(b"0123456789")
    file.write(4, b"xy")
    assert file.size == 10
    file.write(9, b"end")
    assert files.read(root / "a") == b"0123xy678end"
    assert file.size == 12


def _truncates_and_extends(files: Files, root: Path) -> None:
    file = files.open(root / "a", create=True)
    file.append(b"0123456789")
    file.truncate(4)
    file.append(b"x")
    assert files.read(root / "a") == b"0123x"
    file.truncate(8)
    assert files.read(root / "a") == b"0123x\0\0\0"
    assert file.size == 8


def _maps_the_current_contents(files: Files, root: Path) -> None:
    file = files.open(root / "a", create=True)
    assert len(files.mapped(root / "a")) == 0
    file.append(b"abc")
    view = files.mapped(root / "a")
    assert bytes(view[:]) == b"abc"


def _open_files_outlive_their_names(files: Files, root: Path) -> None:
    file = files.open(root / "a", create=True)
    file.append(b"abc")
    files.rename(root / "a", root / "a.deleted")
    assert files.names(root) == ["a.deleted"]
    files.remove(root / "a.deleted")
    files.remove(root / "a.deleted")
    assert file.read(0, 3) == b"abc"
    assert not files.exists(root / "a.deleted")


def _renames_replace(files: Files, root: Path) -> None:
    for name in ("old", "new"):
        files.open(root / name, create=True).append(name.encode())
    files.rename(root / "old", root / "new")
    assert files.names(root) == ["new"]
    assert files.read(root / "new") == b"old"


def _replaces_atomically(files: Files, root: Path) -> None:
    replace(files, root / "a", b"first and long")
    replace(files, root / "a", b"second")
    assert files.read(root / "a") == b"second"
    assert files.names(root) == ["a"]


def _directories(files: Files, root: Path) -> None:
    files.make_dir(root / "d" / "t-0")
    files.make_dir(root / "d" / "t-0")
    assert files.is_dir(root / "d" / "t-0")
    files.open(root / "d" / "t-0" / "a", create=True)
    files.sync_dir(root / "d")
    assert not files.is_dir(root / "d" / "t-0" / "a")
    files.rename(root / "d" / "t-0", root / "d" / "t-0-delete")
    assert files.names(root / "d") == ["t-0-delete"]
    full = error_text(StorageError, lambda: files.remove_dir(root / "d" / "t-0-delete"))
    assert errno.errorcode[errno.ENOTEMPTY] in full
    remove_flat_dir(files, root / "d" / "t-0-delete")
    assert files.names(root / "d") == []


def _missing_files_are_storage_errors(files: Files, root: Path) -> None:
    for attempt in (
        lambda: files.open(root / "none"),
        lambda: files.read(root / "none"),
        lambda: files.size(root / "none"),
        lambda: files.mapped(root / "none"),
        lambda: files.rename(root / "none", root / "other"),
        lambda: files.names(root / "none"),
    ):
        assert str(root / "none") in error_text(StorageError, attempt)


def _one_process_holds_a_lock(files: Files, root: Path) -> None:
    release = files.lock(root / ".lock")
    assert str(root) in error_text(DirectoryLocked, lambda: files.lock(root / ".lock"))
    release()
    files.lock(root / ".lock")()


CHECKS = (
    _appends_and_reads,
    _writes_in_place,
    _truncates_and_extends,
    _maps_the_current_contents,
    _open_files_outlive_their_names,
    _renames_replace,
    _replaces_atomically,
    _directories,
    _missing_files_are_storage_errors,
    _one_process_holds_a_lock,
)
