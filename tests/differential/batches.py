"""Record batches, valid and broken, as bytes."""

import time
from struct import pack
from zlib import crc32

from crc32c import crc32c

from penstock.record.batch import CHECKED_FROM, HEADER, HEADER_BYTES, LENGTH_END
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.record.varint import write_varint

NOW_MS = int(time.time() * 1000)
"""One time for the whole run and for both brokers."""
HOUR_MS = 3_600_000
HEADER_FIELDS = (
    "base_offset",
    "batch_length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


def batch(
    count: int = 1,
    *,
    size: int = 5,
    key: bytes | None = b"k",
    codec: Codec = Codec.NONE,
    timestamp: int = NOW_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    pairs = [(key, bytes([97 + number % 26]) * size) for number in range(count)]
    return bytes(
        build_batch(
            numbered(pairs, timestamp),
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
            control=control,
        )
    )


def patched(data: bytes, **changed: int) -> bytes:
    """The same batch with other header fields; its CRC is made right again unless given."""
    fields = zip(HEADER_FIELDS, HEADER.unpack_from(data), strict=True)
    values = [changed.get(name, value) for name, value in fields]
    out = bytearray(HEADER.pack(*values)) + data[HEADER_BYTES:]
    if "crc" not in changed:
        out[17:21] = pack(">I", crc32c(bytes(out[CHECKED_FROM:])))
    return bytes(out)


def framed(payload: bytes, count: int = 1, **changed: int) -> bytes:
    """A valid header around any payload."""
    sound = batch(max(count, 1))[:HEADER_BYTES] + payload
    length = HEADER_BYTES - LENGTH_END + len(payload)
    return patched(sound, batch_length=length, record_count=count, **changed)


def record(
    *,
    attributes: int = 0,
    timestamp_delta: int = 0,
    offset_delta: int = 0,
    key_bytes: int | None = None,
    value_bytes: int | None = None,
    header_count: int = 0,
    tail: bytes = b"",
    size: int | None = None,
) -> bytes:
    """One record, whose length fields may be wrong."""
    body = bytearray([attributes])
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    for declared, data in ((key_bytes, b"key"), (value_bytes, b"value")):
        write_varint(body, len(data) if declared is None else declared)
        body += b"" if declared is not None and declared < 0 else data
    write_varint(body, header_count)
    body += tail
    out = bytearray()
    write_varint(out, len(body) if size is None else size)
    return bytes(out + body)


def message_v0() -> bytes:
    body = pack(">bb", 0, 0) + pack(">i", 1) + b"k" + pack(">i", 1) + b"v"
    return _message(body)


def message_v1() -> bytes:
    body = pack(">bbq", 1, 0, NOW_MS) + pack(">i", 1) + b"k" + pack(">i", 1) + b"v"
    return _message(body)


def _message(body: bytes) -> bytes:
    return pack(">qiI", 0, len(body) + 4, crc32(body)) + body
