"""The decoder to use: in C where the extension was built, else on numpy; the same columns."""

from penstock.spark.decode.vectorised import VectorisedDecoder

try:
    from penstock.spark.decode.native import NativeDecoder
except ImportError:
    NATIVE, Decoder = False, VectorisedDecoder
else:
    NATIVE, Decoder = True, NativeDecoder  # type: ignore[assignment]  # its twin

__all__ = ["NATIVE", "Decoder"]
