"""Fuzz target for everything that reads a peer's bytes: frames, headers, every message.

PYTHONPATH=src:tests python -m fuzz wire -max_total_time=60
"""

from penstock.errors import ProtocolError
from penstock.wire.codec import decoder
from penstock.wire.frame import FrameBuffer, read_request_header

MAX_FRAME_BYTES = 1 << 16


def fuzz_wire(data: bytes) -> None:
    """Read the bytes as a client's stream: only ProtocolError may be raised."""
    buffer = FrameBuffer(MAX_FRAME_BYTES)
    while data:
        room = buffer.space()
        taken = data[: len(room)]
        room[: len(taken)] = taken
        buffer.received(len(taken))
        data = data[len(taken) :]
        try:
            while (frame := buffer.next()) is not None:
                fuzz_request(frame)
        except ProtocolError:
            return


def fuzz_request(frame: memoryview) -> None:
    header, at = read_request_header(frame)
    if header.api.low <= header.version <= header.api.high:
        decoder(header.api.request, header.version)(frame, at)
        # A broker is a client too: the same bytes as a response.
        decoder(header.api.response, header.version)(frame, at)
