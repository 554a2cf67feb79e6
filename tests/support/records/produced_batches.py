"""Batches as a client produces them, and malformed ones that a broker refuses."""

from penstock.errors import ErrorCode
from penstock.record.batch import HEADER_BYTES, LENGTH_END
from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec
from penstock.record.stamp import seal

NOW_MS = 1_700_000_000_000
PAIRS = [(b"k1", b"v1"), (b"k2", None), (b"", b"v3")]

CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD


def produced(timestamp: int = NOW_MS, **fields: object) -> bytearray:
    return build_batch(numbered(PAIRS, timestamp), **fields)  # type: ignore[arg-type]  # as build_batch names them


def resealed(at: int, data: bytes) -> bytearray:
    """An idempotent batch with `data` at `at`, and a matching CRC."""
    batch = produced(producer_id=5, producer_epoch=0, base_sequence=0)
    batch[at : at + len(data)] = data
    seal(batch)
    return batch


def damaged(at: int, data: bytes) -> bytearray:
    """A batch with `data` at `at`, and its old CRC."""
    batch = produced()
    batch[at : at + len(data)] = data
    return batch


def of_bytes(body: bytes, codec: Codec = Codec.NONE) -> bytearray:
    """A batch whose header says one record, and whose payload is `body`."""
    batch = build_batch(numbered([(b"k", b"v")], NOW_MS))[:HEADER_BYTES] + body
    batch[8:12] = (len(batch) - LENGTH_END).to_bytes(4, "big")
    batch[22] = codec
    seal(batch)
    return batch


# One record of size 8: attributes, timestamp delta, offset delta, key "k", value "v", headers.
MALFORMED = {
    "its size is negative": "01",
    "its size passes the end": "12 00 00 00 02 6b 02 76 00",
    "its size is too small": "0e 00 00 00 02 6b 02 76 00",
    "its key passes the end": "10 00 00 00 20 6b 02 76 00",
    "its value passes the end": "10 00 00 00 02 6b 20 76 00",
    "its header count is negative": "10 00 00 00 02 6b 02 76 01",
    "its headers are missing": "10 00 00 00 02 6b 02 76 02",
    "its header key is null": "14 00 00 00 02 6b 02 76 02 01 01",
    "its header value passes the end": "14 00 00 00 02 6b 02 76 02 00 7e",
    "a varint does not end": "ff ff ff ff ff ff ff ff ff ff ff ff",
    "a varint passes 32 bits": "ff ff ff ff 7f 00 00 00 00",
    "a timestamp passes 64 bits": "22 00 ff ff ff ff ff ff ff ff ff 7f 00 02 6b 02 76 00",
    "bytes follow it": "10 00 00 00 02 6b 02 76 00 00",
    "nothing is there": "",
}


REFUSED: dict[str, tuple[bytearray, ErrorCode]] = {
    "nothing at all": (bytearray(), INVALID),
    "a cut batch": (produced()[:-1], INVALID),
    "two batches": (produced() + produced(), INVALID),
    "magic 0": (damaged(16, b"\0"), INVALID),
    "magic 1": (damaged(16, b"\1"), INVALID),
    "magic 3": (damaged(16, b"\3"), CORRUPT),
    "a cut header": (produced()[:40], INVALID),
    "an impossible length": (damaged(8, bytes(4)), CORRUPT),
    "a flipped bit": (damaged(60, b"\7"), CORRUPT),
    "a base offset": (build_batch(numbered(PAIRS, NOW_MS, 9), base_offset=9), INVALID),
    "an unknown codec": (resealed(22, b"\7"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "the control bit": (resealed(22, b"\x20"), INVALID),
    "a last offset delta too small": (resealed(23, b"\0\0\0\1"), INVALID),
    "a negative last offset delta": (resealed(23, b"\xff\xff\xff\xff"), INVALID),
    "no records": (resealed(57, bytes(4)), INVALID),
    "a negative count": (resealed(57, b"\xff" * 4), INVALID),
    "a producer without epoch": (resealed(51, b"\xff\xff"), INVALID),
    "a producer without sequence": (resealed(53, b"\xff" * 4), INVALID),
    "a transaction of nobody": (produced(transactional=True), INVALID),
    "a time far ahead": (produced(NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
    **{
        f"a record, for {wrong}": (of_bytes(bytes.fromhex(body)), INVALID)
        for wrong, body in MALFORMED.items()
    },
    **{
        f"invalid {codec.name} data": (of_bytes(b"no such data", codec), INVALID) for codec in Codec
    },
}
"""Description: the batch, and the error code of the refusal."""
