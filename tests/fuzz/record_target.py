"""Fuzz target: no bytes make the record layer raise anything but a refusal.

PYTHONPATH=src:tests python -m fuzz record -max_total_time=60
"""

from contextlib import suppress

from penstock.errors import KafkaError
from penstock.record.batch import BatchHeader, batches, crc_matches, read_header
from penstock.record.compression import Codec, decompress
from penstock.record.control import read_marker
from penstock.record.record import records
from penstock.record.rules import BatchRules
from penstock.record.validate import check_produced, check_records

LIMIT_BYTES = 1 << 16
RULES = BatchRules(max_message_bytes=1 << 16)


def fuzz_record(data: bytes) -> None:
    """Read `data` as a batch, as a batch's records, and as each codec's input."""
    with suppress(KafkaError):
        for at, header in batches(data):
            crc_matches(data, header, at)
            _read(memoryview(data)[at:], header)
    for number in range(8):
        _read(*_as_records(data, number))
    with suppress(KafkaError):
        check_produced(data, RULES)
    for codec in Codec:
        with suppress(KafkaError):
            assert len(decompress(codec, data, LIMIT_BYTES)) <= LIMIT_BYTES


def _as_records(data: bytes, codec_number: int) -> tuple[bytes, BatchHeader]:
    """`data` behind a header that fits it: random bytes never have one of their own."""
    header = bytearray(61)
    header[8:12] = (49 + len(data)).to_bytes(4, "big")
    header[16] = 2
    header[22] = codec_number
    header[60] = min(len(data) // 8 + 1, 255)
    return bytes(header) + data, read_header(header)


def _read(batch: bytes | memoryview, header: BatchHeader) -> None:
    with suppress(KafkaError):
        for record in records(batch, header, LIMIT_BYTES):
            read_marker(record)
    with suppress(KafkaError):
        check_records(batch, header, keys_required=True, limit_bytes=LIMIT_BYTES)
