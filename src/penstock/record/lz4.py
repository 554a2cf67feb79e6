"""LZ4 frames as Java clients read them: independent blocks of 64 KB, no checksums.

cramjam's frame writer makes linked blocks, which Java rejects, so this module writes the frame.
The batch's CRC covers everything; further checksums would only cost time.
"""

from struct import Struct

from penstock.types import Buffer

# Magic, FLG (version 1, independent blocks), BD (64 KB), and the descriptor's checksum: the
# second byte of its xxh32, constant because the descriptor is.
_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_END_MARK = bytes(4)
_BLOCK_BYTES = 64 * 1024
_SIZE = Struct("<I")
_STORED = 1 << 31


def compress(data: Buffer, level: int | None = None) -> bytes:
    view = memoryview(data)
    parts: list[Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        plain = view[start : start + _BLOCK_BYTES]
        block = _block(plain, level)
        if len(block) < len(plain):
            parts += (_SIZE.pack(len(block)), block)
        else:
            parts += (_SIZE.pack(len(plain) | _STORED), plain)
    parts.append(_END_MARK)
    return b"".join(parts)


def _block(plain: memoryview, level: int | None) -> bytes:
    import cramjam  # late, as in `compression`

    if level is None:
        return bytes(cramjam.lz4.compress_block(plain, store_size=False))
    return bytes(
        cramjam.lz4.compress_block(
            plain, mode="high_compression", compression=level, store_size=False
        )
    )
