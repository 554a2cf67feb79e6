"""Figures of the record layer: python -m bench record"""

from collections.abc import Callable

from bench.timing import best_s

from penstock.record.batch import HEADER_BYTES, crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec, compress, decompress
from penstock.record.record import Record, records
from penstock.record.rules import BatchRules
from penstock.record.validate import check_produced, check_records, check_timestamps
from penstock.record.walk import NATIVE, walk, walk_in_python
from penstock.types import Buffer

NOW_MS = 1_700_000_000_000
LIMIT_BYTES = 1 << 24


def measure(name: str, call: Callable[[], object], size_bytes: int = 0) -> None:
    took_s = best_s(call)
    rate = f"{size_bytes / took_s / 1e6:10,.0f} MB/s" if size_bytes else ""
    print(f"{name:44} {took_s * 1e6:10.2f} us {rate}")


def plain_records(count: int, size_bytes: int) -> list[Record]:
    return [
        Record(i, NOW_MS + i // 10, b"key-%06d" % i, b"v" * (size_bytes - 10), [])
        for i in range(count)
    ]


def events(size_bytes: int) -> bytes:
    """JSON lines that compress about as service events do."""
    lines = []
    made = seed = 0
    while made < size_bytes:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        line = b'{"user":"%012x","event":"click","page":"/item/%d","at":%d}\n' % (
            seed >> 16,
            seed % 9973,
            NOW_MS + made,
        )
        lines.append(line)
        made += len(line)
    return b"".join(lines)[:size_bytes]


def main() -> None:
    large = build_batch(plain_records(630, 100))
    header = read_header(large)
    rules = BatchRules(max_message_bytes=1 << 20)
    measure("read_header", lambda: read_header(large))
    measure("crc_matches, 64 KB", lambda: crc_matches(large, header), len(large))
    measure("check_produced, 64 KB", lambda: check_produced(large, rules), len(large))
    small = build_batch(plain_records(1, 100))
    measure("check_produced, 1 x 100 B", lambda: check_produced(small, rules))

    thousand = plain_records(1000, 100)
    batch = build_batch(thousand)
    header = read_header(batch)
    measure("records, 1000 x 100 B", lambda: sum(1 for _ in records(batch, header, LIMIT_BYTES)))
    measure("build_batch, 1000 x 100 B", lambda: build_batch(thousand))

    for count, size_bytes in ((1, 100), (64, 1024), (630, 100), (100_000, 10)):
        measure_walks(count, size_bytes)
    for count, size_bytes in ((64, 1024), (630, 100)):
        for codec in Codec:
            measure_checks(codec, count, size_bytes)

    for codec in list(Codec)[1:]:
        for size_bytes in (1 << 16, 1 << 20):
            measure_codec(codec, events(size_bytes))


def measure_walks(count: int, size_bytes: int) -> None:
    """The walk that Kafka's broker, too, does through every produced batch: in C and in Python."""
    data = memoryview(build_batch(plain_records(count, size_bytes)))[HEADER_BYTES:]
    walks = {"C": walk, "Python": walk_in_python} if NATIVE else {"Python": walk_in_python}
    for language, call in walks.items():
        took_s = best_s(lambda call=call: call(data, count, True))  # type: ignore[misc]  # mypy knows no default there
        name = f"walk in {language}, {count} x {size_bytes} B"
        print(f"{name:44} {took_s * 1e6:10.2f} us {took_s * 1e9 / count:10,.1f} ns a record")


def measure_checks(codec: Codec, count: int, size_bytes: int) -> None:
    """All checks of a produce request for one batch before the append."""
    body = events(count * size_bytes)
    batch = build_batch(
        [
            Record(i, NOW_MS, b"key-%06d" % i, body[i * size_bytes : (i + 1) * size_bytes], [])
            for i in range(count)
        ],
        codec=codec,
    )
    rules = BatchRules(max_message_bytes=1 << 20)
    scratch = bytearray(1 << 20)

    def checked(data: Buffer) -> None:
        header = check_produced(data, rules)
        timestamps = check_records(
            data, header, keys_required=False, limit_bytes=LIMIT_BYTES, scratch=scratch
        )
        check_timestamps(timestamps, rules, NOW_MS)

    name = f"{count} x {size_bytes} B, {codec.name.lower()}"
    measure(f"header only, {name}", lambda: check_produced(batch, rules))
    measure(f"all checks, {name}", lambda: checked(batch))


def measure_codec(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    name = f"{codec.name.lower()}, {len(data) >> 10} KB"
    ratio = f"{len(data) / len(packed):.1f} : 1"
    measure(f"compress {name} ({ratio})", lambda: compress(codec, data), len(data))
    measure(f"decompress {name}", lambda: decompress(codec, packed, LIMIT_BYTES), len(data))


if __name__ == "__main__":
    main()
