"""Compacts one batch. Pure: batch in, batch or nothing out.

A batch that keeps all its records is returned unchanged. One that loses some is built from the
bytes of those it keeps. Offsets never change: a batch keeps its base offset and its last offset.
"""

from dataclasses import dataclass

from penstock.config.value import LONG_MAX
from penstock.log.compaction.offset_map import OffsetMap
from penstock.log.compaction.spans import RecordSpan, spans
from penstock.record.batch import HEADER, HEADER_BYTES, LENGTH_END, BatchHeader, payload
from penstock.record.build import build_batch, emptied
from penstock.record.compression import compress
from penstock.record.record import records
from penstock.record.stamp import seal
from penstock.types import Buffer


@dataclass(frozen=True, slots=True)
class CleaningRound:
    """The inputs of one cleaning: the newest offsets, the time, and the topic's settings."""

    offsets: OffsetMap
    now_ms: int
    delete_retention_ms: int
    max_records_bytes: int


@dataclass(frozen=True, slots=True)
class BatchRetention:
    """The decision about a batch as a whole, apart from its single records.

    `loses_records`: its records were aborted, or it is a marker past its delete horizon.
    `stays_empty`: it carries a producer's last sequence or epoch, or the round's last offset.
    `ends_nothing`: it is a marker whose transaction has no batch left; it gets its delete horizon
    (KIP-534).
    """

    loses_records: bool = False
    stays_empty: bool = False
    ends_nothing: bool = False


def rewritten(
    batch: Buffer, header: BatchHeader, retention: BatchRetention, this: CleaningRound
) -> Buffer | None:
    """The batch to write in place of `batch`: itself if nothing changes, None to drop it."""
    if header.record_count == 0:
        return batch if retention.stays_empty else None
    if retention.loses_records:
        return emptied(header) if retention.stays_empty else None
    if header.is_control:
        starts_horizon = retention.ends_nothing and header.delete_horizon_ms is None
        return _with_horizon(batch, header, None, this) if starts_horizon else batch
    if header.base_offset > this.offsets.latest_offset:
        return batch
    data = payload(batch, header, this.max_records_bytes)
    kept = _kept(data, header, this)
    if not kept:
        return emptied(header) if retention.stays_empty else None
    if header.delete_horizon_ms is None and any(span.is_tombstone for span in kept):
        return _with_horizon(batch, header, {span.offset_delta for span in kept}, this)
    if len(kept) == header.record_count:
        return batch
    return _of_spans(data, header, kept)


def _kept(data: bytes, header: BatchHeader, this: CleaningRound) -> list[RecordSpan]:
    """The records to keep: the newest of each key; tombstones until their batch's delete horizon.

    Records after the map's last offset stay: newer records of their keys are not known yet. A
    record without a key is removed: no later record could replace it.
    """
    horizon = header.delete_horizon_ms
    tombstones_stay = horizon is None or this.now_ms < horizon
    latest = this.offsets.latest_offset
    superseded = this.offsets.supersedes
    kept = []
    for span in spans(data, header.record_count):
        offset = header.base_offset + span.offset_delta
        if offset > latest or (
            span.key is not None
            and (tombstones_stay or not span.is_tombstone)
            and not superseded(span.key, offset)
        ):
            kept.append(span)
    return kept


def _of_spans(data: bytes, header: BatchHeader, kept: list[RecordSpan]) -> bytearray:
    """The batch with the kept records only; their bytes stay, since deltas count from the same
    base.
    """
    body: Buffer = b"".join(data[span.start : span.end] for span in kept)
    if header.codec:
        body = compress(header.codec, body)
    newest_ms = header.max_timestamp
    if not header.is_log_append_time:
        newest_ms = header.base_timestamp + max(span.timestamp_delta for span in kept)
    batch = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        HEADER_BYTES - LENGTH_END + len(body),
        header.leader_epoch,
        header.magic,
        0,
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        newest_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        len(kept),
    )
    batch += body
    seal(batch)
    return batch


def _with_horizon(
    batch: Buffer, header: BatchHeader, kept: set[int] | None, this: CleaningRound
) -> bytearray:
    """The batch with a delete horizon for its tombstones or marker; `kept` None keeps all records.

    The horizon takes the base timestamp's place, so every timestamp delta is rewritten.
    """
    stays = [
        record
        for record in records(batch, header, this.max_records_bytes)
        if kept is None or record.offset - header.base_offset in kept
    ]
    # `delete.retention.ms` may be as large as a timestamp, and so may a record's distance from it.
    latest = min(LONG_MAX, LONG_MAX + min(record.timestamp for record in stays))
    return build_batch(
        stays,
        codec=header.codec,
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        leader_epoch=header.leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        log_append_time_ms=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon_ms=min(this.now_ms + this.delete_retention_ms, latest),
    )
