"""Codecs: round trips, limits, and other writers' framings."""

import gzip
import subprocess
import sys
import zlib

import cramjam
import pytest

from penstock.errors import ErrorCode
from penstock.record import snappy
from penstock.record.compression import Codec, DecompressionLimit, compress, decompress
from penstock.record.invalid import InvalidRecord

CODECS = [codec for codec in Codec if codec is not Codec.NONE]
SIZES = [0, 1, 100, 32 * 1024, 64 * 1024, 64 * 1024 + 1, 300_000]
LIMIT_BYTES = 1 << 20


def sample(size: int) -> bytes:
    return b"".join(b"%d," % (i * 7919 % 10007) for i in range(size))[:size]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", Codec)
def test_decompression_restores_the_compressed_data(codec: Codec, size: int) -> None:
    data = sample(size)
    assert bytes(decompress(codec, compress(codec, data), LIMIT_BYTES)) == data


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("codec", CODECS)
def test_a_scratch_buffer_of_any_size_changes_nothing(codec: Codec, size: int) -> None:
    packed = compress(codec, sample(size))
    for scratch_size in (0, 1, size, 2 * size, 1 << 19):
        scratch = bytearray(b"\xff" * scratch_size)
        assert bytes(decompress(codec, packed, LIMIT_BYTES, scratch)) == sample(size)
        assert len(scratch) == scratch_size


@pytest.mark.parametrize("codec", CODECS)
def test_a_scratch_buffer_does_not_move_the_limit(codec: Codec) -> None:
    packed = compress(codec, bytes(10_000))
    for scratch_size in (100, 9_999, 10_000, 20_000):
        with pytest.raises(DecompressionLimit):
            decompress(codec, packed, 9_999, bytearray(scratch_size))
        assert len(decompress(codec, packed, 10_000, bytearray(scratch_size))) == 10_000


@pytest.mark.parametrize("codec", CODECS)
def test_a_scratch_buffer_is_used_if_it_is_large_enough(codec: Codec) -> None:
    scratch = bytearray(1 << 20)
    out = decompress(codec, compress(codec, sample(100_000)), 1 << 24, scratch)
    assert scratch[:100_000] == sample(100_000) == bytes(out)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_higher_level_does_not_produce_larger_output(codec: Codec) -> None:
    data = sample(100_000)
    high = compress(codec, data, 9)
    assert len(high) <= len(compress(codec, data, 1))
    assert bytes(decompress(codec, high, LIMIT_BYTES)) == data


@pytest.mark.parametrize("codec", Codec)
def test_the_limit_itself_is_allowed_and_one_byte_more_is_not(codec: Codec) -> None:
    packed = compress(codec, bytes(10_000))
    assert len(decompress(codec, packed, 10_000)) == 10_000
    with pytest.raises(DecompressionLimit) as refusal:
        decompress(codec, packed, 9_999)
    assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_data_is_rejected(codec: Codec) -> None:
    packed = compress(codec, sample(5000))
    for end in (0, 1, 4, 7, 10, 17, 19, len(packed) // 2, len(packed) - 1):
        with pytest.raises(InvalidRecord):
            decompress(codec, packed[:end], LIMIT_BYTES)


@pytest.mark.parametrize("codec", CODECS)
def test_random_bytes_are_rejected(codec: Codec) -> None:
    with pytest.raises(InvalidRecord):
        decompress(codec, b"\xfe" * 100, LIMIT_BYTES)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_several_frames_decompress_to_one_payload(codec: Codec) -> None:
    joined = compress(codec, sample(70_000)) + compress(codec, sample(10))
    assert bytes(decompress(codec, joined, LIMIT_BYTES)) == sample(70_000) + sample(10)


def test_gzip_of_the_standard_library_is_read_and_ours_by_it() -> None:
    data = sample(1000)
    assert bytes(decompress(Codec.GZIP, gzip.compress(data), LIMIT_BYTES)) == data
    assert gzip.decompress(compress(Codec.GZIP, data)) == data


def test_zstd_without_content_size_is_read() -> None:
    stream = cramjam.zstd.Compressor()
    stream.compress(bytes(200_000))
    packed = bytes(stream.finish())
    assert packed[4] & 0xE0 == 0, "the frame should not tell its size"
    assert len(decompress(Codec.ZSTD, packed, LIMIT_BYTES)) == 200_000


def test_raw_snappy_is_read() -> None:
    packed = bytes(cramjam.snappy.compress_raw(sample(1000)))
    assert bytes(decompress(Codec.SNAPPY, packed, LIMIT_BYTES)) == sample(1000)


def test_many_small_snappy_blocks_count_as_more_than_their_content() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"x"))
    packed = snappy.compress(b"") + (len(block).to_bytes(4, "big") + block) * 1_000
    assert bytes(decompress(Codec.SNAPPY, packed, 512_000)) == b"x" * 1_000
    with pytest.raises(DecompressionLimit):
        decompress(Codec.SNAPPY, packed, 511_999)


def test_snappy_is_written_in_the_framing_of_java() -> None:
    packed = compress(Codec.SNAPPY, sample(100))
    assert packed.startswith(snappy.MAGIC + b"\0\0\0\1\0\0\0\1")


@pytest.mark.parametrize("length", [-1, 0, 1 << 30])
def test_an_impossible_snappy_block_length_is_rejected(length: int) -> None:
    packed = bytearray(compress(Codec.SNAPPY, sample(100)))
    packed[16:20] = length.to_bytes(4, "big", signed=True)
    with pytest.raises(InvalidRecord):
        decompress(Codec.SNAPPY, packed, LIMIT_BYTES)


def bomb(codec: Codec) -> bytes:
    """A few MiB that decompress to over 300 MiB, built in pieces to need little memory here too."""
    piece = bytes(1 << 20)
    match codec:
        case Codec.GZIP:
            stream = zlib.compressobj(wbits=31)
            return b"".join([stream.compress(piece) for _ in range(300)]) + stream.flush()
        case Codec.SNAPPY:
            packed = compress(codec, piece)
            return packed[:16] + packed[16:] * 300
        case _:
            return compress(codec, piece) * 300


BOUNDED = """
import resource, sys
from penstock.record.compression import Codec, DecompressionLimit, decompress

data = sys.stdin.buffer.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(Codec[sys.argv[1]], data, 8 << 20)
    print("not refused")
except DecompressionLimit:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("codec", CODECS)
def test_a_decompression_bomb_takes_little_more_memory_than_the_limit(codec: Codec) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED, codec.name],
        input=bomb(codec),
        capture_output=True,
        check=True,
    )
    # Growing never holds two buffers at once; the codecs' own windows come on top.
    assert int(done.stdout) < 20 * 1024, "KiB"
