"""The decoder to use: in C where the extension was built, else on numpy; the same columns."""

from collections.abc import Iterator
from typing import Protocol

from penstock.spark.decode.columns import Decoded, Wanted
from penstock.spark.decode.vectorised import VectorisedDecoder
from penstock.spark.decode.visible import Batches


class RecordDecoder(Protocol):
    """What both are: fed with the bytes of one answer after the other."""

    wanted: Wanted

    def __init__(self, wanted: Wanted, *, with_headers: bool) -> None: ...

    def decode(self, fetched: memoryview, batches: Batches, *, plain: bool) -> Iterator[Decoded]:
        """Records of fetched bytes; `plain` tells that no batch is hidden but control batches."""

    def rest(self) -> Iterator[Decoded]:
        """What was decoded and not given away yet."""


NATIVE = True
try:
    from penstock.spark.decode.native import NativeDecoder

    Decoder: type[RecordDecoder] = NativeDecoder
except ImportError:
    NATIVE, Decoder = False, VectorisedDecoder
