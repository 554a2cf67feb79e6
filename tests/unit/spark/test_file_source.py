"""Files that grow and rotate: every complete line is read once, whatever their names become."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.spark.connector.file_source import FilePartition, FileReader


class Reading:
    """A reader, and where it is."""

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


def add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\ntwo\nthr")
    reading = Reading(log)
    assert reading.lines() == ["one", "two"]
    assert reading.lines() == []
    add(log, "ee\r\n")
    assert reading.lines() == ["three"]


def test_the_end_of_a_rotated_file_comes_before_nothing_is_lost(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(log)
    assert reading.lines() == ["one"]
    add(log, "two\nlast without end")
    log.rename(tmp_path / "access.log.1")
    add(log, "three\n")
    assert sorted(reading.lines()) == ["last without end", "three", "two"]
    (tmp_path / "access.log.1").rename(tmp_path / "access.log.2")
    add(log, "four\n")
    assert reading.lines() == ["four"]


def test_a_file_that_is_renamed_between_planning_and_reading_is_found(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\n")
    reading = Reading(log)
    (part,) = reading.plan()
    log.rename(tmp_path / "access.log.1")
    assert [row[0] for row in reading.reader.read(part)] == ["one"]


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    add(log, "one\ntwo\n")
    reading = Reading(log)
    assert reading.lines() == ["one", "two"]
    log.write_text("new\n")
    assert reading.lines() == ["new"]


def test_a_file_that_was_deleted_too_early_is_told(tmp_path: Path) -> None:
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


def test_all_files_of_a_folder_are_read_but_packed_ones(tmp_path: Path) -> None:
    add(tmp_path / "a.log", "a\n")
    add(tmp_path / "b.log", "b\n")
    add(tmp_path / "old.log.gz", "packed\n")
    assert sorted(Reading(tmp_path).lines()) == ["a", "b"]


def test_a_run_that_ends_by_itself_reads_the_rest_of_a_rotated_file_too(tmp_path: Path) -> None:
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
