"""The template environment of the pages, and its filters."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent / "templates"
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    found.filters |= {
        "size": size,
        "time": time_text,
        "number": number,
        "json": json_text,
        "seconds": seconds,
    }
    return found


def size(count: float) -> str:
    for unit in UNITS:
        if abs(count) < 1024 or unit == UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def seconds(value: float | None) -> str:
    """A duration for people: 0.4 s, 128 s, 3 h 20 min."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.1f} s"
    if value < 600:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def time_text(at_ms: int | None) -> str:
    """A time in UTC. A timestamp outside the calendar, as producers may write, is shown in ms."""
    if at_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()
