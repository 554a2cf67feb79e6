"""The newest offset of each key of a log's dirty part, in bounded memory."""

from hashlib import blake2b

BYTES_PER_KEY = 224
"""Memory of one entry at worst, measured: digest, integer, and a dict while it doubles."""

DIGEST_BYTES = 20


def digest(key: bytes) -> bytes:
    """The map's key for `key`: a short key itself, a hash of a longer one.

    Their lengths differ, so that no short key equals the hash of a long one. The hash is
    collision-resistant: two keys with one hash would lose a record.
    """
    return key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()


class OffsetMap:
    """Digest of key → newest offset, up to `latest_offset`; later records are not in the map."""

    def __init__(self, memory_bytes: int) -> None:
        self.newest: dict[bytes, int] = {}
        self.capacity = max(1, memory_bytes // BYTES_PER_KEY)
        self.latest_offset = -1

    def put(self, key: bytes, offset: int) -> bool:
        """Note a record, in order of offsets; False when the map is full and has no such key."""
        short = digest(key)
        if len(self.newest) >= self.capacity and short not in self.newest:
            return False
        self.newest[short] = offset
        self.latest_offset = offset
        return True

    def supersedes(self, key: bytes, offset: int) -> bool:
        """Whether a later record has `key`."""
        return self.newest.get(digest(key), -1) > offset
