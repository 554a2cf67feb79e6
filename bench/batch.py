"""Record batches for the load generator to send, as files."""

import time
from dataclasses import dataclass
from pathlib import Path

from bench.record import events

from penstock.record.build import build_batch, numbered
from penstock.record.compression import Codec

BATCH_OVERHEAD_BYTES = 61
RECORD_OVERHEAD_BYTES = 12
"""An upper bound for records of up to 1 MB without key and headers."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of JSON-like text, as many as fit into `size_bytes` uncompressed; at least one."""

    size_bytes: int
    record_bytes: int
    codec: Codec = Codec.NONE

    @property
    def records(self) -> int:
        room = self.size_bytes - BATCH_OVERHEAD_BYTES
        return max(1, room // (self.record_bytes + RECORD_OVERHEAD_BYTES))

    @property
    def payload_bytes(self) -> int:
        return self.records * self.record_bytes

    def file(self, folder: Path) -> Path:
        """Written once per folder; records are of the current time, so retention keeps them."""
        name = f"{self.size_bytes}-{self.record_bytes}-{self.codec.name.lower()}.batch"
        path = folder / name
        if not path.exists():
            text, size = events(self.payload_bytes), self.record_bytes
            values = [(None, text[at : at + size]) for at in range(0, len(text), size)]
            path.write_bytes(
                build_batch(numbered(values, int(time.time() * 1000)), codec=self.codec)
            )
        return path


ONE_RECORD = Batch(0, 100)
KB_1 = Batch(0, 1_000)
KB_16 = Batch(16 << 10, 1_000)
KB_64 = Batch(64 << 10, 1_000)
MB_1 = Batch(1 << 20, 1_000)
