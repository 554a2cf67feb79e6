"""The zone of the times that `penstock sql` prints."""

import os
import time

import pytest
from pyspark.sql.types import TimestampType

from penstock.errors import ConfigError
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


@pytest.mark.parametrize(
    ("zone", "midnight"),
    [
        ("Z", "00:00:00"),
        ("+05:30", "05:30:00"),
        ("-8", "16:00:00"),
        ("GMT+8", "08:00:00"),
        ("UTC-0330", "20:30:00"),
        ("Europe/Berlin", "01:00:00"),
    ],
)
def test_a_zone_may_be_an_offset_as_spark_writes_it(zone: str, midnight: str) -> None:
    """In the variable TZ, GMT+8 is west of Greenwich, and +05:30 is UTC."""
    with times_in(zone):
        assert str(TimestampType().fromInternal(0)).endswith(midnight)


def test_a_zone_that_only_spark_knows_is_refused() -> None:
    with (
        pytest.raises(ConfigError, match="'PST' is not a zone such as Europe/Berlin"),
        times_in("PST"),
    ):
        pass
