"""Batches recompressed to a topic's own `compression.type`."""

import pytest

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError
from penstock.record.batch import crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.recompress import recompressed
from penstock.record.record import Record, records

LIMIT_BYTES = 1 << 26
WRITTEN = [Record(i, 1_000 - i, b"k%d" % i, b"v" * 100, [("h", b"x")]) for i in range(50)]


def produced(codec: Codec, made: list[Record] = WRITTEN) -> bytearray:
    return build_batch(
        made, codec=codec, producer_id=7, producer_epoch=3, base_sequence=11, transactional=True
    )


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("came_as", list(Codec))
def test_records_and_producer_stay_and_the_codec_changes(came_as: Codec, codec: Codec) -> None:
    batch = produced(came_as)
    header = read_header(batch)
    made = recompressed(
        batch,
        header,
        codec,
        max_message_bytes=1 << 20,
        limit_bytes=LIMIT_BYTES,
        newest_ms=1_000,
    )
    found = read_header(made)
    assert (found.codec, found.size_bytes) == (codec, len(made))
    assert crc_matches(made, found)
    assert list(records(made, found, 1 << 20)) == WRITTEN
    assert found.is_transactional
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (7, 3, 11)
    assert (found.max_timestamp, found.last_offset_delta) == (1_000, 49)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY])
def test_a_batch_that_is_too_large_after_recompression_is_rejected(codec: Codec) -> None:
    large = [Record(i, 1, None, bytes(900_000), []) for i in range(50)]
    batch = produced(Codec.ZSTD, large)
    assert len(batch) < 10_000
    with pytest.raises(KafkaError) as refused:
        recompressed(
            batch,
            read_header(batch),
            codec,
            max_message_bytes=1_048_588,
            limit_bytes=LIMIT_BYTES,
            newest_ms=1,
        )
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_the_level_of_the_topic_is_used() -> None:
    made = [Record(i, 1, None, b"%d" % (i * 7919), []) for i in range(5_000)]
    batch = produced(Codec.NONE, made)
    sizes = {
        level: len(
            recompressed(
                batch,
                read_header(batch),
                Codec.GZIP,
                max_message_bytes=1 << 30,
                limit_bytes=LIMIT_BYTES,
                newest_ms=1,
                level=level,
            )
        )
        for level in (1, 9)
    }
    assert sizes[9] < sizes[1]


def test_by_default_the_library_chooses_the_level() -> None:
    config = TopicConfig(compression_lz4_level=12)
    levels = [config.codec_level(codec) for codec in ("gzip", "lz4", "zstd", "snappy", "none")]
    assert levels == [None, 12, None, None, None]
