"""A byte stream split anywhere gives the same frames, and hostile sizes cost nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ProtocolError
from penstock.wire.frame import GROWTH_BYTES, SMALL_BYTES, FrameBuffer


def feed(buffer: FrameBuffer, data: bytes) -> None:
    """Never receives more than there is room for, like a socket."""
    while data:
        room = buffer.space()
        count = min(len(room), len(data))
        assert count > 0
        room[:count] = data[:count]
        buffer.received(count)
        data = data[count:]


def drain(buffer: FrameBuffer) -> list[bytes]:
    found = []
    while (frame := buffer.next()) is not None:
        found.append(bytes(frame))
    return found


frames = st.lists(st.binary(max_size=100) | st.integers(0, 20_000).map(bytes), max_size=12)


@given(frames, st.lists(st.integers(1, 9_000), min_size=1))
def test_frames_come_out_complete_however_the_stream_is_split(
    sent: list[bytes], pieces: list[int]
) -> None:
    stream = b"".join(len(frame).to_bytes(4, "big") + frame for frame in sent)
    buffer, got, at, turn = FrameBuffer(20_000), [], 0, 0
    while at < len(stream):
        size = pieces[turn % len(pieces)]
        feed(buffer, stream[at : at + size])
        got += drain(buffer)
        at, turn = at + size, turn + 1
    assert got == sent


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_size_outside_the_limit_is_rejected(size: int) -> None:
    buffer = FrameBuffer(100)
    feed(buffer, size.to_bytes(4, "big", signed=True))
    with pytest.raises(ProtocolError, match=rf"frame of {size} bytes: outside \[0, 100\]"):
        buffer.next()


def test_the_buffer_grows_with_received_bytes_and_not_with_the_declared_size() -> None:
    buffer = FrameBuffer(100 << 20)
    feed(buffer, (100 << 20).to_bytes(4, "big"))
    for _ in range(100):
        assert buffer.next() is None
        assert len(buffer.space()) <= SMALL_BYTES
        feed(buffer, b"x")
    feed(buffer, bytes(SMALL_BYTES))
    assert len(buffer.space()) <= 2 * GROWTH_BYTES


def test_a_buffer_that_grew_shrinks_after_many_small_frames() -> None:
    buffer = FrameBuffer(100 << 20)
    large = (1 << 20).to_bytes(4, "big") + bytes(1 << 20)
    feed(buffer, large)
    assert len(drain(buffer)) == 1
    assert len(buffer.space()) > 1 << 20
    for _ in range(200):
        feed(buffer, b"\0\0\0\1x")
        assert drain(buffer) == [b"x"]
    assert len(buffer.space()) <= GROWTH_BYTES


def test_one_small_frame_between_large_ones_does_not_shrink_the_buffer() -> None:
    buffer = FrameBuffer(100 << 20)
    large = (1 << 20).to_bytes(4, "big") + bytes(1 << 20)
    for _ in range(5):
        feed(buffer, large + b"\0\0\0\1x")
        assert len(drain(buffer)) == 2
        assert len(buffer.space()) >= 1 << 20


def test_a_buffer_that_is_not_to_be_kept_is_released_with_its_frame() -> None:
    frame = (200_000).to_bytes(4, "big") + bytes(200_000)
    sizes = []
    for kept_bytes in (1 << 16, 1 << 20):
        buffer = FrameBuffer(1 << 20)
        buffer.kept_bytes = kept_bytes
        at = 0
        while at < len(frame):
            room = buffer.space()
            taken = frame[at : at + len(room)]
            room[: len(taken)] = taken
            buffer.received(len(taken))
            at += len(taken)
        assert bytes(buffer.next() or b"") == frame[4:]
        sizes.append(len(buffer.space()))
    assert sizes[0] < 10_000 < sizes[1]
