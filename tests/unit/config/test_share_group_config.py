"""Settings of share groups: where a group without state starts to read."""

import pytest

from penstock.config.share import ShareConfig
from penstock.config.share_group import check_share_config, duration_ms
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("reset", "ms"),
    [
        ("by_duration:P1DT2H3M4.5S", 93_784_500),
        ("by_duration:pt1s", 1000),
        ("by_duration:PT", None),
        ("by_duration:1h", None),
        ("latest", None),
        (f"by_duration:P{'9' * 20}D", None),
        (f"by_duration:P{'9' * 400}D", None),
    ],
)
def test_durations_are_parsed_and_bounded(reset: str, ms: int | None) -> None:
    assert duration_ms(reset) == ms
    if ms is None and reset != "latest":
        with pytest.raises(ConfigError, match=r"share\.auto\.offset\.reset"):
            check_share_config({"share.auto.offset.reset": reset}, ShareConfig())
