"""Checkpoint files of offsets, in Kafka's format."""

from pathlib import Path

import pytest

from penstock.log.checkpoint import decode_offsets, encode_offsets, read_offsets, write_offsets
from penstock.log.corrupt import CorruptFile
from penstock.testing.files import FakeFiles
from penstock.types import TopicPartition

OFFSETS = {TopicPartition("orders", 0): 17, TopicPartition("orders", 1): 0}


def test_an_offset_checkpoint_is_a_version_a_count_and_a_row_per_partition() -> None:
    assert encode_offsets(OFFSETS) == b"0\n2\norders 0 17\norders 1 0\n"
    assert decode_offsets(encode_offsets(OFFSETS), "it") == OFFSETS


def test_an_empty_checkpoint_holds_no_partition() -> None:
    assert encode_offsets({}) == b"0\n0\n"
    assert decode_offsets(b"0\n0\n", "it") == {}
    assert decode_offsets(b"", "it") == {}


@pytest.mark.parametrize(
    "data",
    [
        b"0\n",
        b"1\n0\n",
        b"0\n2\norders 0 17\n",
        b"0\n1\norders 0 17\norders 1 0\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders 0 -1\n",
        b"0\n1\norders 0 x\n",
        b"0\n1\norders 0 17 3\n",
        b"0\n1\norders 0 99999999999999999999\n",
        b"\xff\xfe\n1\n",
        encode_offsets(OFFSETS)[:-9],
    ],
)
def test_a_damaged_checkpoint_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFile, match="it: "):
        decode_offsets(data, "it")


def test_a_checkpoint_survives_a_crash_once_written() -> None:
    files, path = FakeFiles(), Path("/data/recovery-point-offset-checkpoint")
    files.make_dir(path.parent)
    files.sync_dir(Path("/"))
    assert read_offsets(files, path) == {}
    write_offsets(files, path, OFFSETS)
    files.crash()
    assert read_offsets(files, path) == OFFSETS
    newer = {TopicPartition("orders", 0): 18}
    write_offsets(files, path, newer)
    files.crash()
    assert read_offsets(files, path) == newer
