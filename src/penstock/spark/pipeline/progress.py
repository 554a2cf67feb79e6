"""The progress of a pipeline: rows per second, lag, batch time and watermark of each query."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class BatchProgress(msgspec.Struct, frozen=True, omit_defaults=False):
    """A finished micro-batch, or a check of the sources that found nothing new."""

    query: str
    batch: int
    at: str
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None
    """Records in the sources after the batch; None if no source reports its end."""
    watermark: str | None
    broken: dict[str, int] = {}
    """Rows that broke each expectation."""


def progress(event: Mapping[str, Any]) -> BatchProgress:
    """Spark's progress event of a micro-batch."""
    return BatchProgress(
        query=event.get("name") or str(event["id"]),
        batch=int(event["batchId"]),
        at=event["timestamp"],
        rows=int(event.get("numInputRows", 0)),
        rows_per_second=_number(event.get("processedRowsPerSecond")),
        batch_ms=int(event.get("batchDuration", 0)),
        lag=lag(event.get("sources", [])),
        watermark=_watermark(event.get("eventTime", {})),
        broken={
            name.removeprefix("expect:"): int(metric["broken"])
            for name, metric in event.get("observedMetrics", {}).items()
            if name.startswith("expect:")
        },
    )


def lag(sources: Sequence[Mapping[str, Any]]) -> int | None:
    """The number of offsets between a batch's end and the topics' ends."""
    behind: int | None = None
    for each in sources:
        end, latest = _offsets(each.get("endOffset")), _offsets(each.get("latestOffset"))
        if end is None or latest is None:
            continue
        behind = (behind or 0) + sum(
            max(0, last - end.get(partition, 0)) for partition, last in latest.items()
        )
    return behind


def _offsets(value: object) -> dict[tuple[str, str], int] | None:
    """`{"topic": {"0": 5}}`, as an object or as text; None for anything else."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except msgspec.DecodeError:
            return None
    try:
        topics = msgspec.convert(value, dict[str, dict[str, int]])
    except msgspec.ValidationError:
        return None
    return {(topic, part): at for topic, parts in topics.items() for part, at in parts.items()}


def _watermark(times: Mapping[str, str]) -> str | None:
    """None before the first row, when Spark reports 1970."""
    watermark = times.get("watermark")
    return None if watermark is None or watermark.startswith("1970-") else watermark


def _number(value: object) -> float:
    """Zero for NaN and infinity, which Spark reports as they are."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return round(number, 1) if number == number and abs(number) < 1e15 else 0.0  # noqa: PLR0124


COLUMNS = ("QUERY", "BATCH", "ROWS", "ROWS/S", "LAG", "BATCH MS", "WATERMARK", "BROKEN")


def row(each: BatchProgress) -> tuple[str, ...]:
    """A row of the table."""
    broken = ", ".join(f"{name}: {count}" for name, count in each.broken.items() if count)
    return (
        each.query,
        str(each.batch),
        str(each.rows),
        f"{each.rows_per_second:.0f}",
        "-" if each.lag is None else str(each.lag),
        str(each.batch_ms),
        each.watermark or "-",
        broken or "-",
    )
