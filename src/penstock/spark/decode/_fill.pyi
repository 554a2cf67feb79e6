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
def fill_plain(
    fetched: bytes | bytearray | memoryview,
    place: tuple[int, int, int],
    check_crcs: bool,
    wanted: tuple[int, int, int, int],
    with_headers: bool,
    room: tuple[int, int],
    buffers: tuple[object, ...],
    /,
) -> tuple[tuple[int, int, int], int]: ...
