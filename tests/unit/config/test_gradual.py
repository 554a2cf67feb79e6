"""Thread counts change in steps, as in Kafka."""

import pytest

from penstock.config.broker import broker_settings
from penstock.config.gradual import GRADUAL, TooFar, check_steps
from penstock.config.setting import Update

NAME = "num.io.threads"


@pytest.mark.parametrize(
    ("now", "wanted"), [(8, 4), (8, 16), (8, 8), (3, 1), (1, 2), (5, 2), (100, 50)]
)
def test_half_and_double_are_allowed_steps(now: int, wanted: int) -> None:
    check_steps({NAME: str(now)}, {NAME: str(wanted)})


@pytest.mark.parametrize(
    ("now", "wanted", "why"),
    [
        (8, 3, "at least half of the present 8"),
        (8, 17, "at most double the present 8"),
        (1, 3, "at most double the present 1"),
        (5, 1, "at least half of the present 5"),
    ],
)
def test_a_larger_step_is_rejected_with_a_reason(now: int, wanted: int, why: str) -> None:
    with pytest.raises(TooFar, match=f"^{NAME}={wanted} .*{why}"):
        check_steps({NAME: str(now)}, {NAME: str(wanted)})


def test_the_cleaner_cannot_be_switched_off_at_run_time() -> None:
    with pytest.raises(TooFar, match="at least 1"):
        check_steps({}, {"log.cleaner.threads": "0"})
    check_steps({"log.cleaner.threads": "0"}, {"log.cleaner.threads": "0"})  # set at startup


def test_the_default_applies_if_nothing_is_set() -> None:
    with pytest.raises(TooFar):
        check_steps({NAME: "32"}, {})
    check_steps({NAME: "16"}, {})


def test_all_of_them_can_be_altered_at_run_time() -> None:
    assert {broker_settings()[name].update for name in GRADUAL} == {Update.CLUSTER_WIDE}
