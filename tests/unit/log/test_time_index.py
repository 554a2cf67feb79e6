"""The time index: entries, search, truncation."""

from pathlib import Path

import pytest

from penstock.log.corrupt import CorruptFile
from penstock.log.time_index import TimeIndex, TimestampOffset
from penstock.testing.files import FakeFiles

PATH = Path("/00000000000000000000.timeindex")


def index_of(*entries: tuple[int, int], base_offset: int = 0) -> tuple[FakeFiles, TimeIndex]:
    files = FakeFiles()
    index = TimeIndex.empty(files, PATH, base_offset)
    for entry in entries:
        index.append(TimestampOffset(*entry))
    return files, index


def test_a_timestamp_is_sought_from_the_last_entry_not_later_than_it() -> None:
    _, index = index_of((1557554753000, 10), (1557554753400, 20), (1557554753500, 31))
    assert index.lookup(1557554753430) == (1557554753400, 20)
    assert index.lookup(1557554753400) == (1557554753400, 20)
    assert index.lookup(1557554752999) == (-1, 0)


def test_an_entry_is_eight_bytes_of_timestamp_and_four_of_relative_offset() -> None:
    files, index = index_of((0x0102030405060708, 1_000_007), base_offset=1_000_000)
    index.entries.trim()
    assert files.read(PATH).hex() == "0102030405060708" + "00000007"


def test_only_growing_timestamps_are_indexed() -> None:
    _, index = index_of((50, 1), (50, 2), (40, 3), (60, 4))
    assert len(index.entries) == 2
    assert index.last == (60, 4)


def test_truncation_restores_the_newest_remaining_timestamp() -> None:
    files, index = index_of(*((n, n) for n in range(1, 1_000)))
    index.truncate_to(500)
    assert index.last == (499, 499)
    index.entries.trim()
    assert TimeIndex.open(files, PATH, 0).last == (499, 499)


@pytest.mark.parametrize("data", [bytes(11), (9).to_bytes(8) + bytes(4) + bytes(12)])
def test_an_inconsistent_index_is_refused(data: bytes) -> None:
    files = FakeFiles()
    files.open(PATH, create=True).append(data)
    with pytest.raises(CorruptFile):
        TimeIndex.open(files, PATH, 0)
