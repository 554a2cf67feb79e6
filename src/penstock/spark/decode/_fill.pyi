def fill(
    payload: bytes | bytearray | memoryview,
    at: int,
    left: int,
    batch: tuple[int, int, bool],
    wanted: tuple[int, int, int, int],
    with_headers: bool,
    room: tuple[int, int],
    buffers: tuple[object, ...],
    /,
) -> tuple[int, int]: ...
