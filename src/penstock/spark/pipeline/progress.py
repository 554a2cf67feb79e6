"""How far a pipeline is: rows per second, lag, batch time and watermark of each query."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Progress(msgspec.Struct, frozen=True, omit_defaults=False):
    """One finished micro-batch, or one look at the sources that found nothing new."""

    query: str
    batch: int
    at: str
    rows: int
    rows_per_second: float
    batch_ms: int
    lag: int | None
    """Records that the sources held behind the batch; None where no source counts."""
    watermark: str | None
    broken: dict[str, int] = {}
    """Of each expectation, how many rows broke it."""


def progress(event: Mapping[str, Any]) -> Progress:
    """What Spark says of a micro-batch, in our words."""
    return Progress(
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
    """How many offsets are between a batch's end and the topics' ends."""
    behind: int | None = None
    for each in sources:
        end, latest = _offsets(each.get("endOffset")), _offsets(each.get("latestOffset"))
        if end is None or latest is None:
            continue
        behind = (behind or 0) + sum(
            max(0, last - end.get(place, 0)) for place, last in latest.items()
        )
    return behind


def _offsets(told: object) -> dict[tuple[str, str], int] | None:
    """`{"topic": {"0": 5}}`, as an object or as its text; None for anything else."""
    if isinstance(told, str):
        try:
            told = msgspec.json.decode(told)
        except msgspec.DecodeError:
            return None
    try:
        topics = msgspec.convert(told, dict[str, dict[str, int]])
    except msgspec.ValidationError:
        return None
    return {(topic, part): at for topic, parts in topics.items() for part, at in parts.items()}


def _watermark(times: Mapping[str, str]) -> str | None:
    """None before the first row: Spark then says 1970."""
    watermark = times.get("watermark")
    return None if watermark is None or watermark.startswith("1970-") else watermark


def _number(value: object) -> float:
    """Spark writes NaN and infinity as they come."""
    number = float(value) if isinstance(value, int | float) else 0.0
    return round(number, 1) if number == number and abs(number) < 1e15 else 0.0  # noqa: PLR0124


COLUMNS = ("QUERY", "BATCH", "ROWS", "ROWS/S", "LAG", "BATCH MS", "WATERMARK", "BROKEN")


def row(each: Progress) -> tuple[str, ...]:
    """A line of the table."""
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
