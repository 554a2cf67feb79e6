"""Batches that benchmarks send have the declared number and size of records."""

from pathlib import Path

import pytest
from bench.batch import KB_1, KB_64, MB_1, ONE_RECORD, Batch

from penstock.record.batch import crc_matches, read_header
from penstock.record.compression import Codec
from penstock.record.record import records

MAX_MESSAGE_BYTES = 1_048_588


@pytest.mark.parametrize("batch", [ONE_RECORD, KB_1, KB_64, MB_1, Batch(65_536, 1_000, Codec.LZ4)])
def test_a_batch_holds_the_declared_records(batch: Batch, tmp_path: Path) -> None:
    data = batch.file(tmp_path).read_bytes()
    header = read_header(data)
    assert crc_matches(data, header)
    sizes = [len(each.value or b"") for each in records(data, header, 1 << 24)]
    assert sizes == [batch.record_bytes] * batch.records
    assert len(data) <= MAX_MESSAGE_BYTES


def test_a_large_batch_is_nearly_full(tmp_path: Path) -> None:
    assert 0.97 * MB_1.size_bytes < MB_1.file(tmp_path).stat().st_size <= MB_1.size_bytes


def test_events_compress(tmp_path: Path) -> None:
    packed = Batch(65_536, 1_000, Codec.ZSTD).file(tmp_path)
    assert packed.stat().st_size < KB_64.file(tmp_path).stat().st_size / 2
