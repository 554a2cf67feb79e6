"""A produced batch as it is stored: checked, corrected, and in the codec of its topic."""

import pytest

from penstock.errors import ErrorCode
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec, DecompressionLimit
from penstock.record.record import Record, records
from penstock.record.rejected import EXAMINED_BYTES, RejectedRecords
from penstock.record.rules import BatchRules
from penstock.record.validate import COMPRESSION_COST, stored
from penstock.types import TopicPartition

LIMIT_BYTES = 1 << 16
KEPT = BatchRules(max_message_bytes=1 << 30)
PARTITION = TopicPartition("t", 0)


def as_stored(
    written: list[Record], codec: Codec, rules: BatchRules, limit_bytes: int = LIMIT_BYTES
) -> tuple[bytes, int]:
    batch = build_batch(written, codec=codec)
    made, header, walked_bytes = stored(
        batch, read_header(batch), rules, PARTITION, now_ms=0, limit_bytes=limit_bytes
    )
    assert header == read_header(made)
    assert list(records(made, header, limit_bytes)) == written
    return bytes(made), walked_bytes


@pytest.mark.parametrize("came_as", [Codec.NONE, Codec.ZSTD])
def test_work_is_limited_and_more_so_if_records_are_recompressed(came_as: Codec) -> None:
    large = [Record(0, 0, None, bytes(LIMIT_BYTES // COMPRESSION_COST), [])]
    _, walked_bytes = as_stored(large, came_as, KEPT)
    assert walked_bytes > LIMIT_BYTES // COMPRESSION_COST
    anew = BatchRules(max_message_bytes=1 << 30, codec=Codec.GZIP)
    with pytest.raises(DecompressionLimit):
        as_stored(large, came_as, anew)
    made, _ = as_stored(large, came_as, anew, 2 * LIMIT_BYTES)
    assert read_header(made).codec is Codec.GZIP


def test_a_batch_past_the_limit_is_not_examined() -> None:
    keys = BatchRules(max_message_bytes=1 << 30, keys_required=True)
    large = [Record(0, 0, None, bytes(LIMIT_BYTES), [])]
    with pytest.raises(DecompressionLimit):
        as_stored(large, Codec.LZ4, keys)
    with pytest.raises(RejectedRecords) as refused:
        as_stored(large, Codec.LZ4, keys, 2 * LIMIT_BYTES)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_among_very_large_records_the_first_invalid_ones_are_named() -> None:
    keys = BatchRules(max_message_bytes=1 << 30, keys_required=True)
    large = [Record(i, 0, None, bytes(EXAMINED_BYTES // 2), []) for i in range(3)]
    with pytest.raises(RejectedRecords) as refused:
        as_stored(large, Codec.ZSTD, keys, 2 * EXAMINED_BYTES)
    assert [each.batch_index for each in refused.value.errors] == [0]
