"""The offset index: entries, search, truncation."""

from pathlib import Path

import pytest

from penstock.log.corrupt import CorruptFile
from penstock.log.offset_index import OffsetIndex
from penstock.testing.files import FakeFiles

PATH = Path("/00000000000000000000.index")


def index_of(*entries: tuple[int, int], base_offset: int = 0) -> tuple[FakeFiles, OffsetIndex]:
    files = FakeFiles()
    index = OffsetIndex.empty(files, PATH, base_offset)
    for offset, position in entries:
        index.append(offset, position)
    return files, index


@pytest.mark.row("A098")
def test_offset_23_is_sought_from_the_entry_of_offset_20_at_byte_320() -> None:
    _, index = index_of((6, 156), (13, 230), (20, 320), (35, 507))
    assert index.lookup(23) == (20, 320)


def test_an_entry_finds_itself_and_earlier_offsets_start_at_the_beginning() -> None:
    _, index = index_of((105, 4200), (110, 8400), base_offset=100)
    assert index.lookup(110) == (110, 8400)
    assert index.lookup(109) == (105, 4200)
    assert index.lookup(104) == (100, 0)
    assert index.lookup(1_000_000) == (110, 8400)


@pytest.mark.row("A096")
def test_an_entry_is_four_bytes_of_relative_offset_and_four_of_position() -> None:
    files, index = index_of((1_000_007, 4_660), base_offset=1_000_000)
    index.entries.trim()
    assert files.read(PATH).hex() == "00000007" + "00001234"


def test_the_file_is_preallocated_and_trimmed_to_its_entries() -> None:
    files, index = index_of()
    index.entries.preallocate(8_000)
    assert files.size(PATH) == 8_000
    index.append(7, 4_200)
    index.entries.trim()
    assert files.size(PATH) == 8


def test_preallocating_less_than_was_written_keeps_all_entries() -> None:
    """A start after `segment.index.bytes` was lowered."""
    files, index = index_of(*((n, n * 8) for n in range(1, 101)))
    index.entries.write()
    index.entries.preallocate(80)
    assert files.size(PATH) == 800
    index.append(101, 808)
    index.entries.trim()
    assert OffsetIndex.open(files, PATH, 0, 1 << 20).lookup(50) == (50, 400)


@pytest.mark.parametrize("written", [0, 1, 511, 512, 513, 1_000])
def test_entries_in_memory_and_in_the_file_are_searched_as_one(written: int) -> None:
    _, index = index_of(*((n * 10, n * 100) for n in range(1, written + 1)))
    index.entries.write()
    for n in range(written + 1, written + 40):
        index.append(n * 10, n * 100)
    for n in range(1, written + 40):
        assert index.lookup(n * 10) == (n * 10, n * 100)
        assert index.lookup(n * 10 + 9) == (n * 10, n * 100)


def test_an_index_reads_back_what_was_written() -> None:
    files, index = index_of(*((n, n * 8) for n in range(1, 2_000)))
    index.entries.trim()
    again = OffsetIndex.open(files, PATH, 0, 1 << 20)
    assert again.last_offset == 1_999
    assert again.lookup(1_500) == (1_500, 12_000)


@pytest.mark.parametrize("kept", [0, 1, 600, 1_998, 1_999])
def test_truncation_forgets_entries_at_and_after_the_offset(kept: int) -> None:
    files, index = index_of(*((n, n * 8) for n in range(1, 2_000)))
    index.truncate_to(kept + 1)
    assert len(index.entries) == kept
    assert index.last_offset == (kept or -1)
    index.append(5_000, 80_000)
    assert index.lookup(4_999) == (kept, kept * 8)
    assert index.lookup(5_000) == (5_000, 80_000)
    index.entries.trim()
    assert files.size(PATH) == (kept + 1) * 8


def test_a_truncated_file_has_no_old_entries_after_its_new_ones() -> None:
    files, index = index_of(*((n, n * 8) for n in range(1, 1_025)))
    index.entries.preallocate(10_000)
    index.truncate_to(2)
    assert files.read(PATH) == (b"\0\0\0\1\0\0\0\x08").ljust(10_000, b"\0")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\0\0\0\1\0\0", "no multiple of 8"),
        (b"\0\0\0\1\0\0\0\x08" + bytes(8), "points to byte 0"),
        (b"\0\0\0\1\0\x10\0\0", "points to byte 1048576 of 4096"),
    ],
)
def test_an_inconsistent_index_is_refused(data: bytes, complaint: str) -> None:
    files = FakeFiles()
    files.open(PATH, create=True).append(data)
    with pytest.raises(CorruptFile, match=complaint):
        OffsetIndex.open(files, PATH, 0, 4096)
