"""Recompresses a produced batch in the topic's own `compression.type`.

The bytes of the records stay as they are, so the only cost is decompressing and compressing.
"""

from penstock.record.batch import (
    CODEC_BITS,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    TRANSACTIONAL,
    BatchHeader,
    payload_view,
)
from penstock.record.compression import Codec, compress
from penstock.record.rules import BatchTooLarge
from penstock.record.stamp import seal
from penstock.types import Buffer


def recompressed(
    batch: Buffer,
    header: BatchHeader,
    codec: Codec,
    *,
    max_message_bytes: int,
    limit_bytes: int,
    newest_ms: int,
    level: int | None = None,
    scratch: bytearray | None = None,
) -> bytearray:
    """An already validated batch with its records compressed in `codec`.

    Raises `BatchTooLarge` if the result exceeds `max.message.bytes`, as Kafka does. The producer
    then splits the batch and sends the parts.
    """
    body = payload_view(batch, header, limit_bytes, scratch)
    if codec is not Codec.NONE:
        body = compress(codec, body, level)
    size_bytes = HEADER_BYTES + len(body)
    if size_bytes > max_message_bytes:
        raise BatchTooLarge(
            f"batch of {size_bytes} bytes in the topic's own compression.type exceeds "
            f"max.message.bytes = {max_message_bytes}"
        )
    made = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        made,
        0,
        header.base_offset,
        size_bytes - LENGTH_END,
        header.leader_epoch,
        header.magic,
        0,
        codec & CODEC_BITS | header.attributes & TRANSACTIONAL,
        header.last_offset_delta,
        header.base_timestamp,
        newest_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    made += body
    seal(made)
    return made
