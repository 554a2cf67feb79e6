"""Fuzz target: whatever a broker answers, Spark's decoders agree on rows or refuse it.

PYTHONPATH=src:tests python -m fuzz decode -max_total_time=60
"""

from typing import Any

from penstock.errors import KafkaError
from penstock.spark.decode.columns import DecodedColumns, RecordBounds
from penstock.spark.decode.decoder import Decoder, RecordDecoder
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import VisibleBatches

WANTED = RecordBounds()


def fuzz_decode(data: bytes) -> None:
    """Read `data` as a response's bytes, and as the records of a batch with a matching header."""
    for fetched in (data, _as_batch(data)):
        found = [
            _columns(decoder, fetched)
            for decoder in (
                Decoder(WANTED, with_headers=True),
                VectorisedDecoder(WANTED, with_headers=True),
            )
        ]
        assert found[0] == found[1]


def _columns(decoder: RecordDecoder, fetched: bytes) -> list[object]:
    # The bytes have no matching CRC, and the bugs to find are behind that check.
    batches = VisibleBatches(WANTED, [], check_crcs=False, scratch=None)
    try:
        decoded = [*decoder.decode(memoryview(fetched), batches, plain=True), *decoder.rest()]
    except KafkaError:
        return ["refused"]
    return [column for each in decoded for column in _values(each)]


def _values(decoded: DecodedColumns) -> list[object]:
    # Python's dates end earlier than Spark's.
    columns: list[Any] = [*decoded._replace(timestamp=decoded.timestamp.cast("int64"))]
    for column in columns:
        column.validate(full=True)
    return [column.to_pylist() for column in columns]


def _as_batch(data: bytes) -> bytes:
    header = bytearray(61)
    header[8:12] = (49 + len(data)).to_bytes(4, "big")
    header[16] = 2
    header[60] = min(len(data) // 8 + 1, 255)
    return bytes(header) + data
