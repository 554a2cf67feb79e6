"""Batches as a client produces them, and what is wrong with those that a broker refuses."""

from penstock.errors import ErrorCode
from penstock.record.batch import seal
from penstock.record.build import build_batch, numbered

NOW_MS = 1_700_000_000_000
PAIRS = [(b"k1", b"v1"), (b"k2", None), (b"", b"v3")]

CORRUPT = ErrorCode.CORRUPT_MESSAGE
INVALID = ErrorCode.INVALID_RECORD


def produced(timestamp: int = NOW_MS, **fields: object) -> bytearray:
    return build_batch(numbered(PAIRS, timestamp), **fields)  # type: ignore[arg-type]  # as build_batch names them


def resealed(at: int, data: bytes) -> bytearray:
    """An idempotent batch with other bytes at `at`, and a CRC that matches them."""
    batch = produced(producer_id=5, producer_epoch=0, base_sequence=0)
    batch[at : at + len(data)] = data
    seal(batch)
    return batch


def damaged(at: int, data: bytes) -> bytearray:
    """A batch with other bytes at `at`, and its old CRC."""
    batch = produced()
    batch[at : at + len(data)] = data
    return batch


REFUSED: dict[str, tuple[bytearray, ErrorCode]] = {
    "nothing at all": (bytearray(), INVALID),
    "a cut batch": (produced()[:-1], INVALID),
    "a byte too many": (produced() + b"\0", INVALID),
    "two batches": (produced() + produced(), INVALID),
    "magic 0": (damaged(16, b"\0"), INVALID),
    "magic 1": (damaged(16, b"\1"), INVALID),
    "magic 3": (damaged(16, b"\3"), CORRUPT),
    "a cut header": (produced()[:40], INVALID),
    "an impossible length": (damaged(8, bytes(4)), CORRUPT),
    "a flipped bit": (damaged(60, b"\7"), CORRUPT),
    "a base offset": (build_batch(numbered(PAIRS, NOW_MS, 9), base_offset=9), INVALID),
    "a codec that is none": (resealed(22, b"\7"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "the control bit": (resealed(22, b"\x20"), INVALID),
    "the broker's timestamp type": (resealed(22, b"\x08"), ErrorCode.INVALID_TIMESTAMP),
    "a last offset delta too small": (resealed(23, b"\0\0\0\1"), INVALID),
    "a negative last offset delta": (resealed(23, b"\xff\xff\xff\xff"), INVALID),
    "no records": (resealed(57, bytes(4)), INVALID),
    "a negative count": (resealed(57, b"\xff" * 4), INVALID),
    "a producer without epoch": (resealed(51, b"\xff\xff"), INVALID),
    "a producer without sequence": (resealed(53, b"\xff" * 4), INVALID),
    "a transaction of nobody": (produced(transactional=True), INVALID),
    "a time far ahead": (produced(NOW_MS + 3_600_001), ErrorCode.INVALID_TIMESTAMP),
}
"""What is wrong, the batch, and the error code of the refusal."""
