"""Batches that Apache Kafka's classes and librdkafka wrote; see scripts/make_batch_fixtures.py."""

import json
from pathlib import Path

import pytest

from penstock.record.batch import crc_matches, read_header
from penstock.record.build import build_batch, emptied
from penstock.record.control import EndTransactionMarker, build_marker, read_marker
from penstock.record.record import records
from penstock.record.validate import check_records
from support.records.batch_reading import LIMIT_BYTES, reading

FIXTURES = Path(__file__).parents[2] / "fixtures" / "batches"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.bin"))


def load(name: str) -> bytes:
    return (FIXTURES / f"{name}.bin").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_another_writer_is_read_as_in_kafka(name: str) -> None:
    batch = load(name)
    assert crc_matches(batch, read_header(batch))
    assert reading(batch) == json.loads((FIXTURES / f"{name}.json").read_text())


@pytest.mark.parametrize("name", [name for name in NAMES if "emptied" not in name])
def test_the_walk_accepts_batches_of_other_writers(name: str) -> None:
    batch = load(name)
    check_records(batch, read_header(batch), keys_required=False, limit_bytes=LIMIT_BYTES)


@pytest.mark.row("A002")
@pytest.mark.parametrize(
    "name", ["java-none", "java-log-append-time", "java-transactional", "java-delete-horizon"]
)
def test_our_batch_of_the_same_records_has_the_same_bytes(name: str) -> None:
    theirs = load(name)
    header = read_header(theirs)
    # LogAppendTime hides the records' own timestamps, which are still in the bytes.
    shown = read_header(load("java-none")) if header.is_log_append_time else header
    ours = build_batch(
        records(load("java-none") if header.is_log_append_time else theirs, shown, LIMIT_BYTES),
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    assert ours == theirs


@pytest.mark.row("A112")
@pytest.mark.parametrize(("name", "offset"), [("java-commit", 70), ("java-abort", 71)])
def test_our_marker_has_the_same_bytes_as_kafkas(name: str, offset: int) -> None:
    theirs = load(name)
    committed = name == "java-commit"
    ours = build_marker(
        producer_id=4001,
        producer_epoch=3,
        committed=committed,
        coordinator_epoch=9,
        timestamp=1_700_000_000_000,
        base_offset=offset,
        leader_epoch=5,
    )
    assert ours == theirs
    (record,) = records(theirs, read_header(theirs), LIMIT_BYTES)
    assert read_marker(record) == EndTransactionMarker(committed=committed, coordinator_epoch=9)


def test_our_emptied_batch_has_the_same_bytes_as_kafkas() -> None:
    theirs = load("java-emptied")
    assert emptied(read_header(theirs)) == theirs
