from penstock.spark.sink.encode import ArrowColumn, RecordColumns
from penstock.types import Buffer

def append(
    out: bytearray | memoryview,
    at: int,
    limit: int,
    order: Buffer,
    start: int,
    end: int,
    timestamps: Buffer,
    base_timestamp: int,
    first_delta: int,
    rows: RecordColumns,
    /,
) -> tuple[int, int, int, int]: ...
def partitions(key: ArrowColumn | None, count: int, into: bytearray | memoryview, /) -> None: ...
