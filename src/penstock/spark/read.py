"""What a task does: fetch a range, decode it, hand out Arrow's record batches."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from penstock.client.isolation import visible_batches
from penstock.errors import KafkaError
from penstock.record.batch import BatchHeader, CorruptBatch
from penstock.record.record import payload_view
from penstock.spark.cluster import Client
from penstock.spark.decode.columns import MAX_INT64, MIN_INT64, PartitionColumns, Wanted
from penstock.spark.decode.decoder import NATIVE, Decoder
from penstock.spark.fetch import READ_AHEAD, Fetched, RangeFetch
from penstock.spark.ranges import OffsetRange
from penstock.spark.read_ahead import ahead
from penstock.spark.source_settings import SourceSettings
from penstock.types import Buffer

DECOMPRESSED_BYTES: Final = 1 << 30
"""More than a broker lets any batch grow to: against a broken one."""
_SCRATCH_BYTES: Final = 2 << 20


def read_range(
    wanted: OffsetRange,
    settings: SourceSettings,
    *,
    oldest_ms: int = MIN_INT64,
    newest_ms: int = MAX_INT64,
) -> Iterator[pa.RecordBatch]:
    """All records of the range, in order; times narrow it further."""
    bounds = Wanted(wanted.start, wanted.end, oldest_ms, newest_ms)
    decoder = Decoder(bounds, with_headers=settings.with_headers)
    columns = PartitionColumns(*wanted.place, with_headers=settings.with_headers)
    batches = _Batches(wanted, check_crcs=settings.fetch.check_crcs)
    with Client(settings.client) as client:
        fetch = RangeFetch(client, wanted, settings.fetch, fail=settings.fail_on_data_loss)
        for fetched in ahead(iter(fetch), READ_AHEAD, client.close):
            if fetched.start > decoder.wanted.first:
                # A batch is given whole; records of it that were deleted are not to come back.
                decoder.wanted = decoder.wanted._replace(first=fetched.start)
            try:
                for decoded in decoder.decode(batches.of(fetched)):
                    yield columns.completed(decoded)
            except KafkaError as error:
                about = f"{wanted.place}, batch from offset {batches.at}"
                raise CorruptBatch(f"{about}: {error}") from None
        for decoded in decoder.rest():
            yield columns.completed(decoded)


class _Batches:
    """The batches of answers that a reader may see, decompressed; `at` is the latest one's."""

    def __init__(self, wanted: OffsetRange, *, check_crcs: bool) -> None:
        self.at = wanted.start
        self._range, self._check_crcs = wanted, check_crcs
        # One buffer for all batches, where the decoder is done with one before the next comes.
        self._scratch = bytearray(_SCRATCH_BYTES) if NATIVE else None

    def of(self, fetched: Fetched) -> Iterator[tuple[BatchHeader, Buffer]]:
        for header, batch in visible_batches(
            fetched.records, fetched.aborted, DECOMPRESSED_BYTES, check_crcs=self._check_crcs
        ):
            self.at = header.base_offset
            if batch is None or header.last_offset < self._range.start:
                continue
            if header.base_offset >= self._range.end:
                return
            yield header, payload_view(batch, header, DECOMPRESSED_BYTES, self._scratch)
