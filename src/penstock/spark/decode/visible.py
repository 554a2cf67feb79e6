"""The batches that a reader may see, decompressed."""

from collections.abc import Iterator
from typing import Final

from penstock.client.isolation import visible_batches
from penstock.record.batch import BatchHeader, CorruptBatch, payload_view
from penstock.record.compression import DecompressionLimit
from penstock.record.invalid import InvalidRecord
from penstock.spark.decode.columns import RecordBounds
from penstock.types import Buffer
from penstock.wire.messages.fetch import AbortedTransaction

DECOMPRESSED_BYTES: Final = 1 << 30
"""More than any broker accepts in a batch: protects against a broken one."""


class VisibleBatches:
    """Called with fetched bytes, yields headers and payloads of the visible batches.

    `aborted` comes from the same response. With a `scratch` buffer a payload is valid only until
    the next one is requested.
    """

    def __init__(
        self,
        wanted: RecordBounds,
        aborted: list[AbortedTransaction],
        *,
        check_crcs: bool,
        scratch: bytearray | None,
    ) -> None:
        self.check_crcs = check_crcs
        self._wanted, self._aborted, self._scratch = wanted, aborted, scratch

    def __call__(self, fetched: memoryview) -> Iterator[tuple[BatchHeader, Buffer]]:
        for header, batch in visible_batches(
            fetched, self._aborted, DECOMPRESSED_BYTES, check_crcs=self.check_crcs
        ):
            if batch is None or not self._touches(header):
                continue
            try:
                payload = payload_view(batch, header, DECOMPRESSED_BYTES, self._scratch)
            except (InvalidRecord, DecompressionLimit) as error:
                raise CorruptBatch(f"batch at offset {header.base_offset}: {error}") from None
            yield header, payload

    def _touches(self, header: BatchHeader) -> bool:
        return header.base_offset < self._wanted.end and header.last_offset >= self._wanted.first
