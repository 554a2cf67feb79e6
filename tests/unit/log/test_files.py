"""The disk, and its fake that can crash, fulfil one contract."""

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.log.disk import DiskFiles
from penstock.log.files import Files, replace
from penstock.testing.check_files import check_files
from penstock.testing.files import FakeFiles

ROOT = Path("/data")


def fake() -> tuple[FakeFiles, Path]:
    files = FakeFiles()
    files.make_dir(ROOT)
    files.sync_dir(Path("/"))
    return files, ROOT


def test_the_disk_fulfils_the_contract_of_files(tmp_path: Path) -> None:
    numbers = count()

    def make() -> tuple[Files, Path]:
        root = tmp_path / str(next(numbers))
        root.mkdir()
        return DiskFiles(), root

    check_files(make)


def test_the_fake_fulfils_the_contract_of_files() -> None:
    check_files(fake)


@pytest.fixture
def file_size_limit() -> Iterator[int]:
    """Limit the size of files of this process: like a full disk, without filling one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield 10_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    signal.signal(signal.SIGXFSZ, handler)


def test_a_partial_write_is_truncated(tmp_path: Path, file_size_limit: int) -> None:
    file = DiskFiles().open(tmp_path / "a", create=True)
    file.append(bytes(6000))
    with pytest.raises(StorageError, match="EFBIG"):
        file.append(bytes(6000))
    assert file.size == (tmp_path / "a").stat().st_size == 6000
    file.append(bytes(file_size_limit - 6000))


def test_a_file_is_closed_with_its_last_reference(tmp_path: Path) -> None:
    file = DiskFiles().open(tmp_path / "a", create=True)
    fd = file.fileno()
    os.fstat(fd)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize("question", [DiskFiles.exists, DiskFiles.is_dir])
def test_an_existence_check_that_fails_is_a_storage_error(
    question: Callable[[DiskFiles, Path], bool], tmp_path: Path
) -> None:
    with pytest.raises(StorageError, match="ENAMETOOLONG"):
        question(DiskFiles(), tmp_path / ("x" * 300))


def test_a_crash_loses_what_was_not_synced() -> None:
    files, root = fake()
    file = files.open(root / "a", create=True)
    file.append(b"synced")
    file.sync()
    files.sync_dir(root)
    file.append(b" not synced")
    files.crash()
    assert files.read(root / "a") == b"synced"


def test_a_crash_loses_a_synced_file_whose_name_was_not_synced() -> None:
    files, root = fake()
    file = files.open(root / "a", create=True)
    file.append(b"synced")
    file.sync()
    files.crash()
    assert files.names(root) == []


def test_a_crash_undoes_renames_and_removals_that_were_not_synced() -> None:
    files, root = fake()
    for name in ("a", "b"):
        replace(files, root / name, name.encode())
    files.rename(root / "a", root / "c")
    files.remove(root / "b")
    files.crash()
    assert files.names(root) == ["a", "b"]


def test_a_crash_may_tear_a_write_or_leave_zeros_in_its_place() -> None:
    files, root = fake()
    replace(files, root / "a", b"old ")
    file = files.open(root / "a")
    file.append(b"new")
    file.append(b"er")
    files.crash(lambda kind, _count: 2 if kind == "bytes" else 3)
    assert files.read(root / "a") == b"old ne\0\0\0"


def test_a_crash_during_replace_leaves_the_old_file_or_the_new_one() -> None:
    files, root = fake()
    replace(files, root / "a", b"old")
    start = files.operations
    replace(files, root / "a", b"old")
    steps = files.operations - start
    for step in range(1, steps + 1):
        files, root = fake()
        replace(files, root / "a", b"old")
        files.fail_at(files.operations + step, errno.EIO)
        with pytest.raises(StorageError, match="EIO"):
            replace(files, root / "a", b"new")
        files.crash(lambda _kind, n: n)
        assert files.read(root / "a") in {b"old", b"new"}


def test_the_next_failure_can_be_chosen() -> None:
    files, root = fake()
    file = files.open(root / "a", create=True)
    files.fail_next("sync", errno.EIO)
    file.append(b"x")
    with pytest.raises(StorageError, match="Input/output error"):
        file.sync()
    file.sync()


def test_a_flipped_bit_is_read_back_after_a_crash() -> None:
    files, root = fake()
    replace(files, root / "a", b"\0\0")
    files.flip_bit(root / "a", 9)
    files.crash()
    assert files.read(root / "a") == b"\0\2"
