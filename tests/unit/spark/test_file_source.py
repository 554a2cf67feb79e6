"""Files that grow and rotate: every complete line is read once, whatever the files' names."""

import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.connector import file_source
from penstock.spark.connector.file_source import FilePartition, FileReader, FileSource
from penstock.spark.connector.tail import names_before


class Reading:
    """A reader and its position."""

    def __init__(self, pattern: Path, *, fail: bool = True) -> None:
        self.reader = FileReader(str(pattern), fail_on_data_loss=fail)
        self.at = self.reader.initialOffset()

    def plan(self) -> list[FilePartition]:
        end = self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit())
        planned = self.reader.partitions(self.at, end)
        self.at = end
        return [each for each in planned if isinstance(each, FilePartition)]

    def lines(self) -> list[str]:
        return [row[0] for part in self.plan() for row in self.reader.read(part)]


def let_rest(path: Path) -> None:
    """Age the file by an hour."""
    hour_ago = path.stat().st_mtime - 3600
    os.utime(path, (hour_ago, hour_ago))


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_line_is_read_once_it_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\ntwo\nthr")
    reading = Reading(log)
    assert reading.lines() == ["one", "two"]
    assert reading.lines() == []
    add(log, "ee\r\n")
    assert reading.lines() == ["three"]


def test_the_end_of_a_rotated_file_is_read(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(log)
    assert reading.lines() == ["one"]
    add(log, "two\nlast without end")
    log.rename(tmp_path / "access.log.1")
    add(log, "three\n")
    assert sorted(reading.lines()) == ["three", "two"], "its writer may not have reopened it"
    let_rest(tmp_path / "access.log.1")
    assert reading.lines() == ["last without end"]
    (tmp_path / "access.log.1").rename(tmp_path / "access.log.2")
    add(log, "four\n")
    assert reading.lines() == ["four"]


def test_a_file_renamed_between_planning_and_reading_is_found(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(log)
    (part,) = reading.plan()
    log.rename(tmp_path / "access.log.1")
    assert [row[0] for row in reading.reader.read(part)] == ["one"]


def test_a_truncated_file_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\ntwo\n")
    reading = Reading(log)
    assert reading.lines() == ["one", "two"]
    log.write_text("new\n")
    assert reading.lines() == ["new"]


def test_a_file_deleted_too_early_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for fail in (True, False):
        add(log, "one\n")
        reading = Reading(log, fail=fail)
        (part,) = reading.plan()
        log.unlink()
        if fail:
            with pytest.raises(ConfigError, match="were deleted before being read"):
                list(reading.reader.read(part))
        else:
            assert list(reading.reader.read(part)) == []


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    for name in ("app1", "app[1]"):
        (tmp_path / name).mkdir()
        add(tmp_path / name / "a.log", f"{name}\n")
    assert Reading(tmp_path / "app[1]").lines() == ["app[1]"]


def test_all_files_of_a_folder_are_read_except_packed_ones(tmp_path: Path) -> None:
    add(tmp_path / "a.log", "a\n")
    add(tmp_path / "b.log", "b\n")
    add(tmp_path / "old.log.gz", "packed\n")
    assert sorted(Reading(tmp_path).lines()) == ["a", "b"]


def test_an_available_now_run_reads_the_rest_of_a_rotated_file(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\npart")
    first = Reading(log)
    first.reader.prepareForTriggerAvailableNow()
    assert first.lines() == ["one"]
    add(log, "ial\n")
    log.rename(tmp_path / "access.log.1")
    add(log, "two\n")
    again = Reading(log)
    again.at = first.at
    again.reader.prepareForTriggerAvailableNow()
    assert sorted(again.lines()) == ["partial", "two"]
    add(log, "later\n")
    assert again.lines() == []


def test_a_line_written_while_its_file_is_renamed_stays_whole(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reading = Reading(log)
    with log.open("w") as writer:
        writer.write("one\nthr")
        writer.flush()
        assert reading.lines() == ["one"]
        log.rename(tmp_path / "app.log.1")
        assert reading.lines() == []
        writer.write("ee\nfour\n")
    add(log, "five\n")
    assert sorted(reading.lines()) == ["five", "four", "three"]
    assert reading.lines() == []


def reuse_inode(log: Path, text: str) -> None:
    """A new file where the old one was: written over in place, it surely has its inode."""
    inode = log.stat().st_ino
    log.write_text(text)
    assert log.stat().st_ino == inode


@pytest.mark.parametrize(
    "text",
    ["tue 1\ntue 2\ntue 3\ntue 4\n", "mon 1\nmon 2\ntue 1\n", "mon 1\nmon 3\n", "tue 1\n"],
    ids=["longer", "a longer one that begins alike", "as long", "shorter"],
)
def test_another_file_with_the_same_inode_is_read_from_its_start(tmp_path: Path, text: str) -> None:
    log = tmp_path / "app.log"
    add(log, "mon 1\nmon 2\n")
    reading = Reading(log)
    assert reading.lines() == ["mon 1", "mon 2"]
    reuse_inode(log, text)
    expected = text.splitlines()
    assert reading.lines() == (expected[2:] if text.startswith("mon 1\nmon 2") else expected)
    add(log, "later\n")
    assert reading.lines() == ["later"]


def test_a_truncated_file_that_outgrew_its_position_is_read_from_its_start(
    tmp_path: Path,
) -> None:
    log = tmp_path / "app.log"
    header = "# fields: time message\n" * 100
    add(log, f"{header}mon\n")
    reading = Reading(log)
    assert reading.lines()[-1] == "mon"
    reuse_inode(log, f"{header}tue\n{'more ' * 100}\n")
    assert [each for each in reading.lines() if not each.startswith("#")] == ["tue", "more " * 100]


@pytest.mark.parametrize("new", ["", "other\nlines\nand more\n"], ids=["cut", "written anew"])
@pytest.mark.parametrize("fail", [True, False])
def test_a_truncation_between_planning_and_reading_is_reported(
    tmp_path: Path, new: str, fail: bool
) -> None:
    log = tmp_path / "app.log"
    add(log, "a\nb\nc\n")
    reading = Reading(log, fail=fail)
    (part,) = reading.plan()
    reuse_inode(log, new)
    if fail:
        with pytest.raises(ConfigError, match=r"bytes 0 to 6 were truncated.*failOnDataLoss"):
            list(reading.reader.read(part))
    else:
        assert list(reading.reader.read(part)) == []


def test_a_query_continues_from_a_checkpoint_without_marks(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    add(log, "one\ntwo\n")
    reading = Reading(log)
    status = log.stat()
    reading.at = {f"{status.st_dev}:{status.st_ino}": [str(log), 4]}
    assert reading.lines() == ["two"]
    reuse_inode(log, "a new file that is longer\n")
    assert reading.lines() == ["a new file that is longer"]


class RenamedDuringLooks:
    """Renames a file after each listing of the folder, before it is opened."""

    def __init__(self, path: Path, times: int) -> None:
        self._path, self._left = path, times
        self._list = file_source.candidates

    def candidates(self, pattern: str, *, with_renamed: bool) -> list[Path]:
        found = self._list(pattern, with_renamed=with_renamed)
        if self._left:
            self._left -= 1
            self._path = self._path.rename(f"{self._path}.1")
        return found


@pytest.mark.parametrize("pattern", ["access.log", "access.log*"])
def test_a_file_renamed_during_a_scan_is_not_forgotten(
    tmp_path: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(tmp_path / pattern)
    assert reading.lines() == ["one"]
    add(log, "two\n")
    with monkeypatch.context() as patched:
        renaming = RenamedDuringLooks(log, file_source.LOOKS - 1)
        patched.setattr(file_source, "candidates", renaming.candidates)
        assert reading.lines() == ["two"]
    assert reading.lines() == []


def test_a_file_is_opened_by_identity_not_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(log)
    (part,) = reading.plan()
    log.rename(tmp_path / "access.log.1")
    renaming = RenamedDuringLooks(tmp_path / "access.log.1", 1)
    monkeypatch.setattr(file_source, "candidates", renaming.candidates)
    assert [row[0] for row in reading.reader.read(part)] == ["one"]


@pytest.mark.parametrize(
    ("rotated", "names"),
    [
        ("app.log.1", ["app.log"]),
        ("app.log-20260101", ["app.log"]),
        (
            "app.log.2026-01-01_10",
            ["app.log", "app.log.2026", "app.log.2026-01", "app.log.2026-01-01"],
        ),
        ("web-1.12", ["web", "web-1"]),
        ("app.log", []),
        ("app.log.err", []),
        ("app-1.log", []),
        (".1", []),
    ],
)
def test_a_rotation_appends_a_number_or_a_date(rotated: str, names: list[str]) -> None:
    assert names_before(rotated) == names


def rotate(log: Path, keep: int) -> None:
    for number in reversed(range(keep)):
        older = log.with_name(f"{log.name}.{number}") if number else log
        if older.exists():
            older.rename(log.with_name(f"{log.name}.{number + 1}"))


def at_time(path: Path, text: str, seconds: int) -> None:
    add(path, text)
    os.utime(path, (seconds, seconds))


def test_a_file_created_and_rotated_between_two_scans_is_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    at_time(tmp_path / "app.log.1", "before the first look\n", 10)
    at_time(log, "one\n", 20)
    reading = Reading(log)
    assert reading.lines() == ["one"]
    for second, line in enumerate(["two", "three", "four"], 30):
        rotate(log, 9)
        at_time(log, f"{line}\n", second)
    at_time(tmp_path / "app.log.err", "of another log\n", 40)
    at_time(tmp_path / "other.log.1", "of another log\n", 40)
    assert sorted(reading.lines()) == ["four", "three", "two"]
    assert reading.lines() == []


@pytest.mark.parametrize("fail", [True, False])
def test_a_file_rotated_away_is_reported(tmp_path: Path, fail: bool) -> None:
    log = tmp_path / "app.log"
    at_time(log, "one\n", 10)
    reading = Reading(log, fail=fail)
    assert reading.lines() == ["one"]
    for second, line in enumerate(["two", "three", "four"], 20):
        rotate(log, 2)
        at_time(log, f"{line}\n", second)
    if fail:
        with pytest.raises(ConfigError, match=r"app.log was deleted.*byte 4.*failOnDataLoss"):
            reading.lines()
    else:
        assert sorted(reading.lines()) == ["four", "three", "two"]
        assert reading.lines() == []


def copy_and_cut(log: Path) -> None:
    """As logrotate's `copytruncate` does."""
    rotate(log.with_name(f"{log.name}.1"), 3)
    shutil.copy(log, f"{log}.1")
    log.write_text("")


def test_the_copy_of_a_truncated_file_is_not_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    add(log, "one\n")
    reading = Reading(log)
    assert reading.lines() == ["one"]
    copy_and_cut(log)
    assert reading.lines() == []
    add(log, "two\n")
    assert reading.lines() == ["two"]
    copy_and_cut(log)
    add(log, "three\n")
    copy_and_cut(log)
    add(log, "four\n")
    assert sorted(reading.lines()) == ["four", "three"]
    copy_and_cut(log)
    assert reading.lines() == []
    add(log, "five\n")
    copy_and_cut(log)
    add(log, "six\n")
    assert sorted(reading.lines()) == ["five", "six"]
    assert reading.lines() == []


@pytest.mark.parametrize("pattern", ["app.log", "app.log*", "*.log"])
def test_lines_that_only_the_copy_has_are_read_there(tmp_path: Path, pattern: str) -> None:
    log = tmp_path / "app.log"
    add(log, "one\n")
    reading = Reading(tmp_path / pattern)
    assert reading.lines() == ["one"]
    add(log, "two\n")
    copy_and_cut(log)
    add(log, "three\n")
    assert sorted(reading.lines()) == ["three", "two"]
    assert reading.lines() == []


def test_lines_that_only_the_copy_has_are_read_from_a_checkpoint_without_times(
    tmp_path: Path,
) -> None:
    log = tmp_path / "app.log"
    add(log, "one\n")
    reading = Reading(log)
    assert reading.lines() == ["one"]
    del reading.at["version"]
    reading.at = {identity: each[:4] for identity, each in reading.at.items()}
    add(log, "two\n")
    copy_and_cut(log)
    add(log, "three\n")
    assert sorted(reading.lines()) == ["three", "two"]
    assert reading.lines() == []


def test_a_copy_is_not_read_later_either(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    at_time(tmp_path / "quiet.log", "quiet\n", 10)
    add(log, "one\n")
    reading = Reading(tmp_path / "*.log")
    assert sorted(reading.lines()) == ["one", "quiet"]
    copy_and_cut(log)
    assert reading.lines() == []
    add(log, "two\n")
    assert reading.lines() == ["two"]


def test_a_file_created_and_rotated_since_an_empty_one_is_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    at_time(tmp_path / "app.log.1", "before the first look\n", 10)
    at_time(log, "", 20)
    reading = Reading(log)
    assert reading.lines() == []
    for second, text in [(30, "one\n"), (40, "")]:
        rotate(log, 9)
        at_time(log, text, second)
    assert reading.lines() == ["one"]
    assert reading.lines() == []


def test_a_copy_with_the_inode_of_an_empty_one_is_not_read(tmp_path: Path) -> None:
    log, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    at_time(log, "one\n", 10)
    reading = Reading(log)
    assert reading.lines() == ["one"]
    log.write_text("")
    at_time(copy, "", 20)  # the log was empty when it was copied
    assert reading.lines() == []
    at_time(log, "two\n", 30)
    assert reading.lines() == ["two"]
    log.write_text("")
    assert reading.lines() == []
    at_time(log, "three\n", 50)
    assert reading.lines() == ["three"]
    at_time(copy, "three\n", 60)  # another file, with the inode of the deleted one
    assert reading.lines() == []
    log.write_text("")
    at_time(log, "four\n", 70)
    assert reading.lines() == ["four"]
    assert reading.lines() == []


def test_files_rotated_before_the_first_scan_are_not_read_for_another_log(
    tmp_path: Path,
) -> None:
    at_time(tmp_path / "quiet.log", "quiet\n", 10)
    at_time(tmp_path / "app.log.1", "before the first look\n", 20)
    at_time(tmp_path / "app.log", "one\n", 30)
    reading = Reading(tmp_path / "*.log")
    assert sorted(reading.lines()) == ["one", "quiet"]
    assert reading.lines() == []


def test_files_that_begin_with_the_same_line_are_all_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    at_time(log, "started\n", 10)
    reading = Reading(log)
    assert reading.lines() == ["started"]
    for second in (20, 30, 40):
        rotate(log, 9)
        at_time(log, "started\n", second)
    add(log, "on\n")
    assert sorted(reading.lines()) == ["on", *["started"] * 3]
    assert reading.lines() == []


class Rotating:
    """A log that is written, rotated and scanned, each at any step."""

    def __init__(self, folder: Path, pattern: str, seed: int) -> None:
        self.log, self._dice = folder / "app.log", random.Random(seed)
        self._now_ns = time.time_ns()
        self.written: list[str] = []
        self.write()
        self._reading = Reading(folder / pattern)
        self.found = self._reading.lines()

    def look(self) -> None:
        self.found += self._reading.lines()

    def write(self) -> None:
        for _ in range(self._dice.randint(1, 4)):
            self.written.append(f"line {len(self.written)}")
            add(self.log, f"{self.written[-1]}\n")
        self._tick(self.log)

    def rename(self) -> None:
        rotate(self.log, 40)
        add(self.log, "")
        self._tick(self.log)

    def copy_and_cut(self) -> None:
        copy, data = self.log.with_name("app.log.1"), self.log.read_bytes()
        rotate(copy, 40)
        middle = self._dice.randint(0, len(data))
        for part in (data[:middle], data[middle:]):
            add(copy, part.decode())
            self._tick(copy)
            self._perhaps(self.look)
        self._perhaps(self._read_more)
        self.log.write_text("")
        self._tick(self.log)

    def run(self, rotation: str, steps: int) -> None:
        rotate_it = self.rename if rotation == "rename" else self.copy_and_cut
        for _ in range(steps):
            self._dice.choice([self.write, self.write, self.look, self.look, rotate_it])()
        self.look()
        self.look()

    def _read_more(self) -> None:
        """Lines that the copy lacks and that were read before the truncation."""
        self.write()
        self.look()

    def _perhaps(self, step: Callable[[], None]) -> None:
        if self._dice.random() < 0.5:
            step()

    def _tick(self, path: Path) -> None:
        self._now_ns += 1_000_000
        os.utime(path, ns=(self._now_ns, self._now_ns))


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
@pytest.mark.parametrize("rotation", ["rename", "copy and cut"])
def test_each_line_is_read_once_at_any_moment(tmp_path: Path, pattern: str, rotation: str) -> None:
    for seed in range(15):
        folder = tmp_path / str(seed)
        folder.mkdir()
        rotating = Rotating(folder, pattern, seed)
        rotating.run(rotation, 20)
        assert sorted(rotating.found) == sorted(rotating.written), f"seed {seed}"


def test_a_file_of_a_folder_may_be_removed_after_it_was_read(tmp_path: Path) -> None:
    add(tmp_path / "a.log", "a\n")
    reading = Reading(tmp_path / "*.log")
    assert reading.lines() == ["a"]
    (tmp_path / "a.log").unlink()
    add(tmp_path / "b.log", "b\n")
    assert reading.lines() == ["b"]


def test_each_line_is_read_once_while_its_file_is_rotated_continuously(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    rotations, lines_each = 60, 20
    add(log, "first\n")
    reading = Reading(log)
    found = reading.lines()

    def write() -> None:
        for number in range(rotations):
            rotate(log, rotations)
            with log.open("w") as file:
                for line in range(lines_each):
                    print(number, line, file=file, flush=True)
            pause.wait(0.02)

    pause = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    deadline = time.monotonic() + 60
    while writer.is_alive() and time.monotonic() < deadline:
        found += reading.lines()
    writer.join()
    found += reading.lines()
    written = [f"{number} {line}" for number in range(rotations) for line in range(lines_each)]
    assert sorted(found) == sorted(["first", *written])


def test_an_unknown_option_is_an_error() -> None:
    """Otherwise a misspelt failOnDataLoss would have no effect."""
    given = {"path": "a.log", "failOnDataLost": "false"}
    with pytest.raises(ConfigError, match="failondatalost; did you mean failOnDataLoss"):
        FileSource(given).streamReader(StructType())
    known = {"path": "a.log", "FailOnDataLoss": "false", "kafka.sasl.mechanism": "PLAIN"}
    assert isinstance(FileSource(known).streamReader(StructType()), FileReader)
