"""The zone of the times that `penstock sql` prints."""

import os
import time

import pytest
from pyspark.sql.types import TimestampType

from penstock.spark.sql.query import times_in


def test_times_are_in_the_querys_zone_whatever_the_machine_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        with times_in("UTC"):
            assert str(TimestampType().fromInternal(0)) == "1970-01-01 00:00:00"
        assert os.environ["TZ"] == "America/New_York"
        assert str(TimestampType().fromInternal(0)) == "1969-12-31 19:00:00"
    finally:
        monkeypatch.undo()
        time.tzset()
