"""Which records of a refused batch are named (KIP-467)."""

import dataclasses

import pytest

from penstock.errors import ErrorCode
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record
from penstock.record.rejected import EXAMINED, RejectedRecords, rejection
from penstock.record.rules import BatchRules
from penstock.types import TopicPartition

NOW_MS = 1_000_000
RULES = BatchRules(
    max_message_bytes=1 << 20,
    timestamp_before_max_ms=1_000,
    timestamp_after_max_ms=500,
    keys_required=True,
)
NO_KEY = "Compacted topic cannot accept message without key in topic partition t-3"


def rejected(
    *written: tuple[bytes | None, int],
    rules: BatchRules = RULES,
    codec: Codec = Codec.NONE,
) -> RejectedRecords | None:
    batch = build_batch(
        [Record(i, at, key, b"v", []) for i, (key, at) in enumerate(written)], codec=codec
    )
    return rejection(
        batch,
        read_header(batch),
        rules,
        TopicPartition("t", 3),
        now_ms=NOW_MS,
        limit_bytes=1 << 20,
    )


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_an_error_about_records_without_key_has_kafkas_text(codec: Codec) -> None:
    found = rejected((None, NOW_MS), (b"k", NOW_MS), (None, NOW_MS), codec=codec)
    assert found is not None
    assert found.code is ErrorCode.INVALID_RECORD
    assert [tuple(each) for each in found.errors] == [(0, NO_KEY), (2, NO_KEY)]
    assert str(found) == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        "the first three errors at most: "
        f"[RecordError(batchIndex=0, message='{NO_KEY}'), "
        f"RecordError(batchIndex=2, message='{NO_KEY}')]"
    )


def test_a_timestamp_out_of_range_decides_the_code() -> None:
    found = rejected((None, NOW_MS), (b"k", NOW_MS - 1_001), (b"k", -1), (b"k", NOW_MS + 501))
    assert found is not None
    assert found.code is ErrorCode.INVALID_TIMESTAMP
    assert str(found) == "One or more records have been rejected due to invalid timestamp"
    assert [each.batch_index for each in found.errors] == [0, 1, 3]
    assert found.errors[1].message == (
        "Timestamp 998999 of message with offset 1 is out of range. "
        "The timestamp should be within [999000, 1000500]"
    )


def test_a_batch_of_valid_records_gives_no_record_errors() -> None:
    assert rejected((b"k", NOW_MS)) is None
    keyless = dataclasses.replace(RULES, keys_required=False)
    assert rejected((None, NOW_MS - 1_000), rules=keyless) is None
    by_broker = dataclasses.replace(RULES, log_append_time=True)
    assert rejected((b"k", 0), rules=by_broker) is None


def test_only_the_first_records_of_a_huge_batch_are_examined() -> None:
    fine = [(b"k", NOW_MS)] * EXAMINED
    assert rejected(*fine, (None, NOW_MS)) is None
