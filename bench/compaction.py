"""The log cleaner's speed on 1 KB records, on one core, by the share of superseded records."""

import random
import tempfile
import time
from pathlib import Path

from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.job import CleanedGroup, CleaningJob, Finished, SegmentSize
from penstock.log.disk import DiskFiles
from penstock.log.segment_files import LOG, offset_path
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.record import Record

RECORD_BYTES = 1024
BATCH_RECORDS = 64
LOG_BYTES = 256 << 20
SEGMENT_BYTES = 64 << 20


def write_log(directory: Path, keys: int, codec: Codec) -> list[SegmentSize]:
    """Segments of records with random keys out of `keys`; values compress about 2 : 1."""
    chance = random.Random(1)
    half = RECORD_BYTES // 2
    value = chance.randbytes(half) + bytes(half)
    segments = []
    offset = 0
    for _ in range(LOG_BYTES // SEGMENT_BYTES):
        base = offset
        path = offset_path(directory, base, LOG)
        with path.open("wb") as out:
            while offset - base < SEGMENT_BYTES // RECORD_BYTES:
                made = [
                    Record(offset + n, 0, b"key-%016d" % chance.randrange(keys), value, [])
                    for n in range(BATCH_RECORDS)
                ]
                out.write(build_batch(made, base_offset=offset, codec=codec))
                offset += BATCH_RECORDS
        segments.append(SegmentSize(base, path.stat().st_size))
    return segments


def measure(name: str, keys: int, codec: Codec = Codec.NONE) -> None:
    with tempfile.TemporaryDirectory() as folder:
        segments = write_log(Path(folder), keys, codec)
        job = CleaningJob(
            directory=folder,
            segments=segments,
            first_dirty=0,
            first_uncleanable=LOG_BYTES // RECORD_BYTES,
            producers=[],
            now_ms=0,
            delete_retention_ms=0,
            segment_bytes=SEGMENT_BYTES,
            segment_index_bytes=10 << 20,
            index_interval_bytes=4096,
        )
        began, began_cpu = time.perf_counter(), time.process_time()
        written = cleaned = 0
        for answer in clean(DiskFiles(), job):
            match answer:
                case CleanedGroup():
                    written += answer.size_bytes
                case Finished():
                    cleaned = answer.cleaned_to
        took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
        assert cleaned == LOG_BYTES // RECORD_BYTES
        records_mb = LOG_BYTES / 1e6
        print(
            f"compaction, {name}: {records_mb / took:.0f} MB/s, {records_mb / took_cpu:.0f} MB/s "
            f"of CPU, {written / sum(each.size_bytes for each in segments):.0%} kept"
        )


def main() -> None:
    count = LOG_BYTES // RECORD_BYTES
    measure("nearly all unique", keys=count * 100)
    measure("two of three superseded", keys=count // 3)
    measure("nearly all superseded", keys=count // 100)
    measure("two of three superseded, lz4", keys=count // 3, codec=Codec.LZ4)
    measure("two of three superseded, zstd", keys=count // 3, codec=Codec.ZSTD)


if __name__ == "__main__":
    main()
