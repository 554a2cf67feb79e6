"""Chooses the decoder: in C if the extension was built, else on numpy. Both give equal columns."""

from collections.abc import Iterator
from typing import Protocol

from penstock.spark.decode.columns import DecodedColumns, RecordBounds
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import VisibleBatches


class RecordDecoder(Protocol):
    """Both decoders; fed with the bytes of one response after the other."""

    wanted: RecordBounds

    def __init__(self, wanted: RecordBounds, *, with_headers: bool) -> None: ...

    def decode(
        self, fetched: memoryview, batches: VisibleBatches, *, plain: bool
    ) -> Iterator[DecodedColumns]:
        """Records of fetched bytes; `plain`: no batch is hidden except control batches."""

    def rest(self) -> Iterator[DecodedColumns]:
        """Records that were decoded but not returned yet."""


NATIVE = True
try:
    from penstock.spark.decode.native import NativeDecoder

    Decoder: type[RecordDecoder] = NativeDecoder
except ImportError:
    NATIVE, Decoder = False, VectorisedDecoder
