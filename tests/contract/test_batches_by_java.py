"""Apache Kafka's own classes read Penstock's batches, and accept or refuse the same produced
batches.
"""

import json
from collections.abc import Iterable

import pytest

from peers import java
from penstock.record.batch import assign, read_header
from penstock.record.build import build_batch, emptied
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.record import Record
from penstock.record.rules import BatchRules
from penstock.record.stamp import stamp_log_append_time, stamp_max_timestamp
from penstock.record.validate import check_produced, check_records, check_timestamps
from support.records.batch_reading import reading
from support.records.produced_batches import NOW_MS, REFUSED, produced

pytestmark = pytest.mark.peer
JARS = "kafka-4.3.1"
RULES = BatchRules(max_message_bytes=1 << 20)
LEADER_EPOCH = 5

HEADERS = [("trace", b"\x00\xff"), ("null", None), ("größe", b""), ("", b"\x01")]
SMALL = [
    Record(0, NOW_MS, b"key", b"value", []),
    Record(1, NOW_MS - 1, b"tombstone", None, HEADERS),
    Record(2, NOW_MS + 70_000, None, b"", []),
]
# More than two blocks of LZ4 and four of snappy; half of it does not compress.
NOISE = b"".join(((i * 2654435761) % 2**32).to_bytes(4, "big") for i in range(20_000))
LARGE = [Record(i, NOW_MS, b"k", NOISE + bytes(len(NOISE)), []) for i in range(3)]


def written() -> dict[str, bytearray]:
    batches = {f"small {codec.name}": build_batch(SMALL, codec=codec) for codec in Codec}
    batches |= {f"large {codec.name}": build_batch(LARGE, codec=codec) for codec in Codec}
    batches |= {
        f"{codec.name} at level 5": build_batch(LARGE, codec=codec, level=5)
        for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
    }
    batches["stamped"] = build_batch(SMALL, codec=Codec.LZ4)
    stamp_log_append_time(batches["stamped"], NOW_MS + 9)
    batches["delete horizon"] = build_batch(SMALL, delete_horizon_ms=NOW_MS + 500)
    batches["transactional"] = build_batch(
        SMALL, producer_id=7, producer_epoch=1, base_sequence=2**31 - 2, transactional=True
    )
    batches["compacted"] = build_batch(
        [SMALL[1]], base_offset=0, last_offset=9, leader_epoch=4, codec=Codec.ZSTD
    )
    batches["emptied"] = emptied(read_header(batches["transactional"]))
    for committed in (True, False):
        batches[f"marker {committed}"] = build_marker(
            producer_id=7,
            producer_epoch=1,
            committed=committed,
            coordinator_epoch=3,
            timestamp=NOW_MS,
        )
    return batches


def test_kafka_reads_every_batch_as_it_was_written() -> None:
    batches = written()
    lines = "".join(f"{batch.hex()}\n" for batch in batches.values())
    answers = java.run("Batches", "read", jars=JARS, stdin=lines).splitlines()
    assert dict(zip(batches, map(json.loads, answers), strict=True)) == {
        name: reading(batch) for name, batch in batches.items()
    }


STRICTER = {
    "a base offset": "NONE",  # Kafka refuses it earlier, outside the classes used here
    "an unknown codec": "UNKNOWN_SERVER_ERROR",
    "a producer without epoch": "NONE",
    "a record, for a timestamp passes 64 bits": "NONE",  # Kafka drops the excess bits
    "a transaction of nobody": "NONE",
}
"""Batches that Penstock refuses, and what Kafka's validator does with them."""
UNFORESEEN = {"a record, for a varint does not end"} | {
    f"invalid {codec.name} data" for codec in Codec if codec is not Codec.NONE
}
"""Batches on which Kafka's validator throws an exception that has no error code of its own."""


def test_kafka_refuses_the_same_batches_with_the_same_codes() -> None:
    cases = {name: batch for name, (batch, _) in REFUSED.items()}
    expected = {name: code.name for name, (_, code) in REFUSED.items()} | STRICTER
    expected |= dict.fromkeys(UNFORESEEN, "UNKNOWN_SERVER_ERROR")
    cases["a byte behind it"], expected["a byte behind it"] = produced() + b"\0", "NONE"
    for codec in Codec:
        cases[codec.name] = produced(codec=codec, producer_id=1, producer_epoch=0, base_sequence=0)
        expected[codec.name] = "NONE"
    assert dict(zip(cases, judged("produced", cases.values()), strict=True)) == expected


def judged(what: str, batches: Iterable[bytearray]) -> list[str]:
    """Kafka's verdict on each batch, for a compacted topic with CreateTime."""
    unbounded, hour_ms = 2**63 - 1, 3_600_000
    lines = [f"true false {NOW_MS} {unbounded} {hour_ms} {batch.hex()}" for batch in batches]
    return java.run("Batches", what, jars=JARS, stdin="\n".join(lines)).splitlines()


def test_kafka_corrects_timestamps_to_the_same_bytes() -> None:
    batches = [
        build_batch(
            [Record(i, at, b"k", b"v", []) for i, at in enumerate(times)],
            codec=codec,
            log_append_time_ms=claimed,
        )
        for codec in Codec
        for claimed in (None, NOW_MS + 9)
        for times in ([NOW_MS], [-1, -1], [NOW_MS, NOW_MS - 5, NOW_MS + 70_000, NOW_MS])
    ]
    for claimed in (-1, 0, NOW_MS + 7_200_000):
        batches += [build_batch(SMALL[:2], codec=codec) for codec in Codec]
        for batch in batches[-len(Codec) :]:
            stamp_max_timestamp(batch, claimed)
    stored = judged("stored", batches)
    for batch in batches:
        header = check_produced(batch, RULES)
        timestamps = check_records(batch, header, keys_required=True, limit_bytes=1 << 20)
        check_timestamps(timestamps, RULES, NOW_MS)
        stamp_max_timestamp(batch, timestamps.newest)
        assign(batch, 0, LEADER_EPOCH)
    assert [batch.hex() for batch in batches] == stored
