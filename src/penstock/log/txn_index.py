"""`.txnindex`: the aborted transactions that end in a segment.

A `read_committed` fetch carries those that overlap it, and the client drops their records.
The whole file is read once: a producer may abort a hundred thousand times in one segment.
"""

from bisect import bisect_left
from pathlib import Path
from struct import Struct

import msgspec

from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files, LogFile
from penstock.types import Buffer

_ENTRY = Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size
VERSION = 0


class AbortedTxn(msgspec.Struct, frozen=True):
    """One aborted transaction; `last_offset` is its marker's.

    `last_stable_offset` is the one just after the abort: a search upwards may stop at the first
    entry whose value is past the fetch, because what ends later began at or after it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(txn: AbortedTxn) -> bytes:
    return _ENTRY.pack(
        VERSION, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
    )


def decode_aborted(data: Buffer, base_offset: int, what: str) -> list[AbortedTxn]:
    """The entries of a segment that begins at `base_offset`; `CorruptFile` if one is impossible."""
    if len(data) % ENTRY_BYTES:
        raise CorruptFile(what, f"has {len(data)} bytes, no multiple of {ENTRY_BYTES}")
    found: list[AbortedTxn] = []
    newest = base_offset - 1
    for version, *fields in _ENTRY.iter_unpack(data):
        txn = AbortedTxn(*fields)
        if version != VERSION:
            raise CorruptFile(what, f"has an entry of version {version}, not {VERSION}")
        if not (txn.first_offset <= txn.last_offset and newest < txn.last_offset):
            raise CorruptFile(what, f"has an entry out of order: {txn}")
        newest = txn.last_offset
        found.append(txn)
    return found


def kept_bytes(data: Buffer, base_offset: int, end_offset: int, what: str) -> int:
    """The size of the file when the log is truncated to `end_offset`."""
    txns = decode_aborted(data, base_offset, what)
    return ENTRY_BYTES * sum(txn.last_offset < end_offset for txn in txns)


def _last_offset(txn: AbortedTxn) -> int:
    return txn.last_offset


def overlapping(txns: list[AbortedTxn], start: int, end: int) -> tuple[list[AbortedTxn], bool]:
    """Aborted transactions with records in `[start, end)`, and whether no later one can have any.

    `txns` are one segment's. If the second value is False, the next segment must be searched too,
    because a transaction is listed where it ended.
    """
    found = []
    for number in range(bisect_left(txns, start, key=_last_offset), len(txns)):
        txn = txns[number]
        if txn.first_offset < end:
            found.append(txn)
        if txn.last_stable_offset >= end:
            return found, True
    return found, False


class TxnIndex:
    """The aborted transactions that end in the segment that begins at `base_offset`."""

    def __init__(self, files: Files, path: Path, base_offset: int) -> None:
        self._files, self._path, self._base_offset = files, path, base_offset
        self._found: list[AbortedTxn] | None = None

    def read(self) -> list[AbortedTxn]:
        if self._found is None:
            data = self._files.read(self._path) if self._files.exists(self._path) else b""
            self._found = decode_aborted(data, self._base_offset, str(self._path))
        return self._found

    def open(self) -> LogFile:
        """Open the file for `append`: after the marker is written, no descriptor may be left."""
        return self._files.open(self._path, create=True)

    def append(self, txn: AbortedTxn, file: LogFile | None = None) -> None:
        (file or self.open()).append(encode_aborted(txn))
        if self._found is not None:
            self._found.append(txn)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions that end at or after `offset`."""
        if self._files.exists(self._path):
            data = self._files.read(self._path)
            kept = kept_bytes(data, self._base_offset, offset, str(self._path))
            self._files.open(self._path).truncate(kept)
            self._found = None

    def remove(self) -> None:
        self._files.remove(self._path)
        self._found = None
