"""The search by timestamp, compared with a scan of all records."""

import random

import pytest

from penstock.record.batch import HEADER_BYTES, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record, records
from penstock.record.search import first_since
from penstock.record.stamp import stamp_log_append_time

LIMIT_BYTES = 1 << 20


def first_of(written: list[Record], timestamp: int, start: int) -> tuple[int, int] | None:
    found = (r for r in written if r.timestamp >= timestamp and r.offset >= start)
    return next(((r.timestamp, r.offset) for r in found), None)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("by_broker", [False, True])
def test_the_search_finds_what_a_scan_finds(codec: Codec, by_broker: bool) -> None:
    dice = random.Random(codec)
    written = [
        Record(i, dice.randrange(1000, 2000), b"k" * dice.randrange(200), None, [("h", b"v")])
        for i in sorted(dice.sample(range(500), 100))  # with gaps, as after compaction
    ]
    batch = build_batch(written, codec=codec)
    if by_broker:
        stamp_log_append_time(batch, 1500)
    header = read_header(batch)
    stored = list(records(batch, header, LIMIT_BYTES))
    for _ in range(100):
        asked = dice.randrange(900, header.max_timestamp + 1), dice.randrange(-10, 510)
        assert first_since(batch, header, *asked, LIMIT_BYTES) == first_of(stored, *asked)


@pytest.mark.parametrize("size", [0x7E, 0x01])
def test_a_damaged_batch_is_refused(size: int) -> None:
    batch = build_batch([Record(i, 1, None, b"value", []) for i in range(2)])
    header = read_header(batch)
    batch[HEADER_BYTES] = size
    with pytest.raises(InvalidRecord):
        first_since(batch, header, 5, 0, LIMIT_BYTES)
