"""Throttling of replication by a rate in bytes."""

import pytest

from penstock.replication.throttle import SAVED_MS, Throttle, is_listed


class Steady:
    def __init__(self) -> None:
        self.now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def test_recorded_bytes_are_paid_off_at_the_rate() -> None:
    time = Steady()
    throttle = Throttle(time)
    assert throttle.delay_ms(100, 1000) == 0
    throttle.record(50, rate=100)
    assert throttle.delay_ms(100, 1000) == 500
    assert throttle.delay_ms(100, 200) == 200
    time.now_ms = 499
    assert throttle.delay_ms(100, 1000) == 1
    time.now_ms = 500
    assert throttle.delay_ms(100, 1000) == 0


def test_only_a_little_unused_time_is_saved_up() -> None:
    """The duration of a fetch must not lower the rate, and a long pause must not raise it."""
    time = Steady()
    throttle = Throttle(time)
    time.now_ms = 60_000
    throttle.record(100, rate=100)
    assert throttle.delay_ms(100, 1000) == 1000 - SAVED_MS


def test_time_saved_at_a_high_rate_is_not_worth_more_at_a_low_one() -> None:
    time = Steady()
    throttle = Throttle(time)
    time.now_ms = 60_000
    assert throttle.delay_ms(1_000_000, 1000) == 0
    throttle.record(100, rate=100)
    assert throttle.delay_ms(100, 1000) == 1000 - SAVED_MS


def test_a_rate_of_zero_blocks_everything() -> None:
    time = Steady()
    throttle = Throttle(time)
    time.now_ms = 60_000
    assert throttle.delay_ms(0, 1000) == 0
    throttle.record(1, rate=0)
    assert throttle.delay_ms(0, 1000) == 1000


def test_a_new_rate_applies_to_the_existing_debt() -> None:
    time = Steady()
    throttle = Throttle(time)
    throttle.record(1_000_000, rate=1)
    time.now_ms = 10
    assert throttle.delay_ms(1, 1000) == 1000
    time.now_ms = 20
    assert throttle.delay_ms(100_000_000, 1000) == 0


@pytest.mark.parametrize(
    ("replicas", "listed"),
    [((), False), (("*",), True), (("0:1", "1:2"), True), (("1:1", "0:2"), False)],
)
def test_replicas_are_listed_by_partition_and_broker(
    replicas: tuple[str, ...],
    listed: bool,
) -> None:
    assert is_listed(replicas, 0, 1) is listed
