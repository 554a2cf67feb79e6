"""Random records as bytes, valid and damaged: many cases in little time."""

from random import Random

from penstock.record.batch import HEADER_BYTES
from penstock.record.build import build_batch
from penstock.record.record import Record

SIZES = (0, 1, 2, 63, 64, 65, 200)
TIMES = (0, 1, -1, 63, 64, -64, -65, 70_000, 2**40, -(2**40), 2**62)
TELLING = (0x00, 0x01, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
"""Bytes that matter in varints: null, the largest one-byte number, and continuation bytes."""


def some_payload(dice: Random) -> tuple[bytes, int]:
    """The bytes of one to four records, and their count."""
    written = [some_record(dice, offset) for offset in range(dice.randint(1, 4))]
    return bytes(build_batch(written)[HEADER_BYTES:]), len(written)


def some_record(dice: Random, offset: int) -> Record:
    headers = [
        ("h" * dice.choice(SIZES[:3]), some_bytes(dice))
        for _ in range(dice.choice([0, 0, 0, 1, 3]))
    ]
    return Record(offset, dice.choice(TIMES), some_bytes(dice), some_bytes(dice), headers)


def some_bytes(dice: Random) -> bytes | None:
    return None if dice.random() < 0.1 else bytes(dice.choice(SIZES))


def untouched(data: bytes, _: Random) -> bytes:
    return data


def damaged(data: bytes, dice: Random) -> bytes:
    """One to three bytes changed, cut out or put in."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(changed) + 1)
        telling = dice.choice(TELLING) if dice.random() < 0.7 else dice.randrange(256)
        match dice.randrange(4):
            case 0:
                changed[at : at + 1] = b""
            case 1:
                changed[at:at] = bytes([telling]) * dice.choice([1, 1, 4, 5, 9, 10])
            case _:
                changed[at : at + 1] = bytes([telling])
    return bytes(changed)


def noise(data: bytes, dice: Random) -> bytes:
    return dice.randbytes(dice.randrange(len(data) + 1))
