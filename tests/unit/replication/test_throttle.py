"""How fast throttled replicas are copied."""

import pytest

from penstock.replication.throttle import Throttle, is_listed


class Steady:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_what_has_passed_is_paid_off_at_the_rate() -> None:
    time = Steady()
    throttle = Throttle(time)
    assert not throttle.is_exceeded(rate=100)
    throttle.passed(50, rate=100)
    time.now_ms = 499
    assert throttle.is_exceeded(rate=100)
    time.now_ms = 500
    assert not throttle.is_exceeded(rate=100)


def test_rest_is_not_saved_up() -> None:
    time = Steady()
    throttle = Throttle(time)
    time.now_ms = 60_000
    throttle.passed(100, rate=100)
    assert throttle.is_exceeded(rate=100)


def test_a_new_rate_holds_for_what_is_owed() -> None:
    time = Steady()
    throttle = Throttle(time)
    throttle.passed(1_000_000, rate=1)
    time.now_ms = 10
    assert throttle.is_exceeded(rate=1)
    time.now_ms = 20
    assert not throttle.is_exceeded(rate=100_000_000)


@pytest.mark.parametrize(
    ("replicas", "listed"),
    [((), False), (("*",), True), (("0:1", "1:2"), True), (("1:1", "0:2"), False)],
)
def test_replicas_are_listed_by_partition_and_broker(
    replicas: tuple[str, ...],
    listed: bool,
) -> None:
    assert is_listed(replicas, 0, 1) is listed
