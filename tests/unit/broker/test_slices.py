"""Responses with records: their pieces in sending order."""

from pathlib import Path

import pytest

from penstock.broker.net.slices import COPIED_BYTES, interleaved
from penstock.errors import ProtocolError
from penstock.log.lookup import LogSlice
from penstock.testing.files import FakeFiles


def stored(size_bytes: int) -> LogSlice:
    files = FakeFiles()
    file = files.open(Path("/log"), create=True)
    file.append(b"r" * size_bytes)
    return LogSlice(file, 0, size_bytes)


def test_few_records_are_copied_between_the_parts_of_the_frame() -> None:
    pieces = interleaved(bytearray(b"headtail"), [(4, stored(3))])
    assert [bytes(each) for each in pieces if isinstance(each, memoryview)] == [
        b"head",
        b"rrr",
        b"tail",
    ]


def test_many_records_stay_in_their_file() -> None:
    many = stored(COPIED_BYTES + 1)
    assert interleaved(bytearray(b"head"), [(4, many)])[1] is many


def test_records_truncated_since_the_response_was_made_end_the_connection() -> None:
    """The client would take what follows for records: the frame's size counts them."""
    records = stored(100)
    records.file.truncate(40)
    with pytest.raises(ProtocolError, match="shorter than it was"):
        interleaved(bytearray(b"head"), [(4, records)])
