"""Dumps a file of a log directory row by row, in the format of Kafka's own dump tool."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from penstock.errors import KafkaError, ProtocolError
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.log.inspection.index_file import IndexCheck, offset_entries, time_entries
from penstock.log.inspection.kraft import control_values
from penstock.log.inspection.row import Row, RowKind, Value, note, problem
from penstock.log.leftovers import offset_of
from penstock.log.producer_snapshot import decode_snapshot
from penstock.log.scan import headers
from penstock.log.segment_files import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
)
from penstock.log.txn_index import decode_aborted
from penstock.record.batch import BatchHeader, CorruptBatch, crc_matches, read_header
from penstock.record.control import read_marker
from penstock.record.record import Record, records
from penstock.types import Buffer

MAX_RECORDS_BYTES = 1 << 30

Decoder: TypeAlias = Callable[[Record], dict[str, str]]
"""The values to show for a record: `key` and `payload`, where there are any."""


class DumpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`deep` shows records, `decoder` their contents too."""

    deep: bool = False
    decoder: Decoder | None = None


class NotDumpable(CorruptFile):
    """The file's name matches no known format."""


def text_decoder(record: Record) -> dict[str, str]:
    """Keys and values as text, as Kafka's tool shows them by default."""
    pairs = {"key": record.key, "payload": record.value}
    return {
        name: data.decode("utf-8", "replace") for name, data in pairs.items() if data is not None
    }


def dump(files: Files, path: Path, options: DumpOptions) -> Iterator[Row]:
    """The rows of one file; a problem in it is a row as well."""
    name = path.name
    for passing in (DELETED, CLEANED, SWAP):
        name = name.removesuffix(passing)
    suffix = Path(name).suffix
    base_offset = offset_of(name)
    dumps: dict[str, Callable[[Files, Path, int], Iterator[Row]]] = {
        INDEX: _dump_offset_index,
        TIME_INDEX: _dump_time_index,
        TXN_INDEX: _dump_aborted,
        SNAPSHOT: _dump_producers,
    }
    # A snapshot of KRaft's metadata (KIP-630): end offset and epoch.
    snapshot = re.fullmatch(r"\d{20}-(\d{10})\.checkpoint", name)
    if base_offset is None or not (snapshot or suffix in {LOG, *dumps}):
        raise NotDumpable(str(path), "is not named as a segment, index or snapshot")
    try:
        if snapshot or suffix == LOG:
            if snapshot:
                yield note(f"Snapshot end offset: {base_offset}, epoch: {int(snapshot[1])}")
            else:
                yield note(f"Log starting offset: {base_offset}")
            yield from _dump_batches(files, path, options)
        else:
            yield from dumps[suffix](files, path, base_offset)
    except CorruptFile as error:
        yield problem(error.why)


def _dump_batches(files: Files, path: Path, options: DumpOptions) -> Iterator[Row]:
    data = files.mapped(path)
    size = len(data)
    position = 0
    view = memoryview(data)
    while position < size:
        try:
            header = read_header(view, position)
        except CorruptBatch as error:
            yield problem(f"no batch begins at byte {position}: {error}")
            return
        batch = view[position : position + header.size_bytes]
        if len(batch) < header.size_bytes:
            yield problem(f"the batch at byte {position} is cut after {len(batch)} bytes")
            return
        is_valid = crc_matches(batch, header)
        yield _batch_row(header, position, is_valid=is_valid)
        if not is_valid:
            yield problem(f"the batch at byte {position} does not match its CRC")
        elif options.deep:
            yield from _record_rows(batch, header, options)
        position += header.size_bytes


def _batch_row(header: BatchHeader, position: int, *, is_valid: bool) -> Row:
    return Row(
        RowKind.BATCH,
        {
            "baseOffset": header.base_offset,
            "lastOffset": header.last_offset,
            "count": header.record_count,
            "baseSequence": header.base_sequence,
            "lastSequence": header.last_sequence,
            "producerId": header.producer_id,
            "producerEpoch": header.producer_epoch,
            "partitionLeaderEpoch": header.leader_epoch,
            "isTransactional": header.is_transactional,
            "isControl": header.is_control,
            "deleteHorizonMs": header.delete_horizon_ms,
            "position": position,
            _time_name(header): header.max_timestamp,
            "size": header.size_bytes,
            "magic": header.magic,
            "compresscodec": header.codec.name.lower(),
            "crc": header.crc,
            "isvalid": is_valid,
        },
    )


def _time_name(header: BatchHeader) -> str:
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _record_rows(batch: Buffer, header: BatchHeader, options: DumpOptions) -> Iterator[Row]:
    try:
        for record in records(batch, header, MAX_RECORDS_BYTES):
            yield Row(RowKind.RECORD, _record_values(record, header, options))
    except (KafkaError, ProtocolError) as error:
        yield problem(f"the batch at offset {header.base_offset} has bad records: {error}")


def _record_values(record: Record, header: BatchHeader, options: DumpOptions) -> dict[str, Value]:
    first = header.base_sequence
    delta = record.offset - header.base_offset
    values: dict[str, Value] = {
        "offset": record.offset,
        _time_name(header): record.timestamp,
        "keySize": -1 if record.key is None else len(record.key),
        "valueSize": -1 if record.value is None else len(record.value),
        "sequence": -1 if first < 0 else (first + delta) % (1 << 31),
        # A name that is not UTF-8 is shown with replacement characters.
        "headerKeys": [
            name.encode(errors="surrogateescape").decode(errors="replace")
            for name, _ in record.headers
        ],
    }
    if header.is_control:
        marker = read_marker(record)
        if marker is not None:
            values["endTxnMarker"] = "COMMIT" if marker.committed else "ABORT"
            values["coordinatorEpoch"] = marker.coordinator_epoch
        values |= control_values(record)
    elif options.decoder is not None:
        values |= options.decoder(record)
    return values


def _dump_offset_index(files: Files, path: Path, base_offset: int) -> Iterator[Row]:
    entries = offset_entries(files.read(path), base_offset, str(path))
    if not entries:
        yield note(f"{path} is empty.")
    for offset, position in entries:
        yield Row(RowKind.ENTRY, {"offset": offset, "position": position})
    yield from _disagreements(files, path.with_suffix(LOG), IndexCheck(entries, []))


def _dump_time_index(files: Files, path: Path, base_offset: int) -> Iterator[Row]:
    entries = time_entries(files.read(path), base_offset, str(path))
    if not entries:
        yield note(f"{path} is empty.")
    for timestamp, offset in entries:
        yield Row(RowKind.ENTRY, {"timestamp": timestamp, "offset": offset})
    yield from _disagreements(files, path.with_suffix(LOG), IndexCheck([], entries))


def _disagreements(files: Files, log: Path, check: IndexCheck) -> Iterator[Row]:
    if not files.exists(log):
        yield note(f"{log} is not there: the entries are not compared with it.")
        return
    try:
        for position, header in headers(files.open(log), 0, files.size(log)):
            check.see(position, header)
    except CorruptBatch as error:
        yield problem(str(error))
    check.end()
    yield from (problem(text) for _, text in check.problems)


def _dump_aborted(files: Files, path: Path, base_offset: int) -> Iterator[Row]:
    for txn in decode_aborted(files.read(path), base_offset, str(path)):
        yield Row(
            RowKind.ENTRY,
            {
                "version": 0,
                "producerId": txn.producer_id,
                "firstOffset": txn.first_offset,
                "lastOffset": txn.last_offset,
                "lastStableOffset": txn.last_stable_offset,
            },
        )


def _dump_producers(files: Files, path: Path, _base_offset: int) -> Iterator[Row]:
    for entry in decode_snapshot(files.read(path), str(path)):
        values: dict[str, Value] = {
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.current_txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
        }
        for batch in entry.batches:
            values |= {
                "firstSequence": batch.base_sequence,
                "lastSequence": batch.last_sequence,
                "lastOffset": batch.last_offset,
                "offsetDelta": batch.offset_delta,
                "timestamp": batch.timestamp,
            }
        yield Row(RowKind.ENTRY, values)
