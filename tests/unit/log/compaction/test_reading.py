"""A cleaner reads segments of a log that keeps changing."""

from pathlib import Path

import pytest

from penstock.log.compaction.reading import whole_batches
from penstock.log.corrupt import CorruptFile
from penstock.testing.files import FakeFiles
from penstock.testing.logs import batch_of

PATH = Path("/data/00000000000000000000.log")


@pytest.mark.parametrize("left", [0, 2, 5, 9])
@pytest.mark.parametrize("torn_bytes", [0, 7])
@pytest.mark.parametrize("buffer_batches", [1, 2, 20])
def test_a_segment_that_is_truncated_while_it_is_read_is_reported(
    left: int, torn_bytes: int, buffer_batches: int
) -> None:
    files, one = FakeFiles(), bytes(batch_of(b"x" * 100))
    files.make_dir(PATH.parent)
    files.open(PATH, create=True).append(one * 10)
    found = whole_batches(files, PATH, 10 * len(one), buffer_batches * len(one))
    next(found)
    files.open(PATH).truncate(left * len(one) + torn_bytes)
    if buffer_batches == 20:
        assert len(list(found)) == 9, "all of it was read before"
        return
    with pytest.raises(CorruptFile, match="ends within the batch"):
        list(found)
