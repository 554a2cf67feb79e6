"""Two claims about disks: consumers that keep pace need no disk, and sequential beats random."""

import os
import tempfile
import time

import numpy as np
from bench.batch import KB_64
from bench.process import disk_read_bytes
from bench.report import rounded
from bench.workload import Bench, Workload

FILE_BYTES = 256 << 20
CHUNK_BYTES = 64 << 10
WORD_BYTES, WORDS = 8, 1 << 22


def read_from_disk(bench: Bench) -> str:
    """Disk reads while records are fetched that were just produced: the page cache has them."""
    workload = Workload(name="fetch", kind="fetch", per="GB", batch=KB_64)
    bench.measure(workload)
    before = disk_read_bytes(bench.subject.pids)
    fetched = bench.measure(workload).load.bytes
    read = disk_read_bytes(bench.subject.pids) - before
    return (
        f"{bench.subject.name}: {rounded(fetched / 1e6)} MB fetched, "
        f"{rounded(read / 1e6)} MB of them read from a disk"
    )


def sequential_and_random() -> str:
    """Appends synced to disk, beside reads of words at random places in memory."""
    chunk = os.urandom(CHUNK_BYTES)
    with tempfile.TemporaryFile(dir=".") as file:
        began_s = time.perf_counter()
        for at in range(0, FILE_BYTES, CHUNK_BYTES):
            os.pwrite(file.fileno(), chunk, at)
        os.fdatasync(file.fileno())
        written = FILE_BYTES / (time.perf_counter() - began_s)
    memory = np.ones(FILE_BYTES // WORD_BYTES, dtype=np.int64)
    places = np.random.default_rng(0).integers(0, len(memory), WORDS)
    began_s = time.perf_counter()
    memory[places].sum()
    touched = WORDS * WORD_BYTES / (time.perf_counter() - began_s)
    return (
        f"sequential writes, synced to disk: {rounded(written / 1e6)} MB/s; "
        f"words at random in memory: {rounded(touched / 1e6)} MB/s"
    )
