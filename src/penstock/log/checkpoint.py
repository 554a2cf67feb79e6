"""Kafka's checkpoint files: a version, a count, one row of text per entry.

`recovery-point-offset-checkpoint`, `replication-offset-checkpoint`, `log-start-offset-checkpoint`
and `cleaner-offset-checkpoint` hold an offset per partition; `leader-epoch-checkpoint` holds
the epochs of one log.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, replace
from penstock.types import TopicPartition

VERSION = 0

_NUMBER = re.compile(r"[0-9]{1,19}")


def encode_rows(rows: Iterable[str]) -> bytes:
    lines = list(rows)
    return "\n".join([str(VERSION), str(len(lines)), *lines, ""]).encode()


def decode_rows(data: bytes, what: str) -> list[str]:
    """The rows of a checkpoint file named `what`; `CorruptFile` unless it is whole.

    Kafka creates these files empty: such a file has no rows.
    """
    if not data:
        return []
    try:
        version, count, *rows = data.decode().splitlines()
    except ValueError:  # not UTF-8, or fewer than two lines
        raise CorruptFile(what, "has no version and count") from None
    if version != str(VERSION):
        raise CorruptFile(what, f"has version {version!r}, not {VERSION}")
    if count != str(len(rows)):
        raise CorruptFile(what, f"declares {count} entries and has {len(rows)}")
    return rows


def integers(row: str, count: int, what: str) -> list[int]:
    """The `count` non-negative numbers of a row."""
    fields = row.split(" ")
    if len(fields) != count or not all(map(_NUMBER.fullmatch, fields)):
        raise CorruptFile(what, f"has a row {row!r} that is not {count} numbers")
    return [int(field) for field in fields]


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_rows(f"{topic} {number} {at}" for (topic, number), at in offsets.items())


def decode_offsets(data: bytes, what: str) -> dict[TopicPartition, int]:
    offsets = {}
    for row in decode_rows(data, what):
        topic, _, numbers = row.partition(" ")
        partition, offset = integers(numbers, 2, what)
        offsets[TopicPartition(topic, partition)] = offset
    return offsets


def read_offsets(files: Files, path: Path) -> dict[TopicPartition, int]:
    """The offsets in the file at `path`; none when there is no such file yet."""
    return decode_offsets(files.read(path), str(path)) if files.exists(path) else {}


def write_offsets(files: Files, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file at `path`; a crash leaves the old offsets or the new ones."""
    replace(files, path, encode_offsets(offsets))
