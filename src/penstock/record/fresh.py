"""Memory to decompress into."""

import mmap

_LARGE_BYTES = 1 << 18


def fresh(size_bytes: int) -> bytearray | mmap.mmap:
    """A buffer of zeros. A large one is not written before its use: clearing 256 MB takes a third
    of a second, and no other thread runs meanwhile.
    """
    if size_bytes <= _LARGE_BYTES:
        return bytearray(size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
