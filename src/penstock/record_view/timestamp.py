"""Formats timestamps of records for people."""

from datetime import datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  UTC throughout; the printed form adds "Z"


def iso_time(timestamp_ms: int) -> str | None:
    """A timestamp in UTC; None if it is missing or beyond the calendar."""
    if timestamp_ms < 0:
        return None
    try:
        time = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds") + "Z"
