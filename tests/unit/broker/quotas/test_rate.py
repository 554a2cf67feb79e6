"""Rates and throttle times, with the numbers that Kafka's own classes give."""

from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.quotas.meter import Meter
from penstock.broker.quotas.rate import LONGEST_MS, Rate
from penstock.broker.quotas.token_bucket import TokenBucket

SAMPLES, WINDOW_MS = 11, 1000


def test_a_new_rate_is_averaged_over_all_windows_but_the_current_one() -> None:
    rate = Rate(SAMPLES, WINDOW_MS)
    rate.record(20_000, 5_000)
    assert rate.window_ms(5_000) == 10_000
    assert rate.per_second(5_000) == 2_000
    assert rate.throttle_ms(1_000, 5_000) == 10_000
    assert rate.throttle_ms(2_000, 5_000) == 0
    assert rate.per_second(5_500) == pytest.approx(20_000 / 10.5)


def test_samples_older_than_the_windows_are_forgotten() -> None:
    rate = Rate(SAMPLES, WINDOW_MS)
    rate.record(500, 0)
    rate.record(500, 999)  # the same window, which counts for as long as its last event
    rate.record(100, 1_000)
    assert rate.per_second(11_998) == pytest.approx(1_100 / 11.998)
    assert rate.per_second(11_999) == pytest.approx(100 / 10.999)
    assert rate.per_second(12_000) == 0
    assert rate.is_idle(12_000)


@given(
    st.lists(st.tuples(st.integers(0, 1500), st.floats(-1e6, 1e9)), max_size=40),
    st.integers(0, 3000),
)
def test_a_rate_is_the_sum_of_its_samples(events: list[tuple[int, float]], later_ms: int) -> None:
    rate, now_ms = Rate(3, WINDOW_MS), 0
    for pause_ms, value in [*events, (later_ms, 0.0)]:
        now_ms += pause_ms
        rate.record(value, now_ms)
        window_ms = rate.window_ms(now_ms)
        total = reduce(add, (each.value for each in rate._samples), 0.0)
        assert rate.per_second(now_ms) == pytest.approx(total * 1000 / window_ms, rel=1e-12)
    now_ms += later_ms
    window_ms = rate.window_ms(now_ms)
    total = reduce(add, (each.value for each in rate._samples), 0.0)
    assert rate.per_second(now_ms) == pytest.approx(total * 1000 / window_ms, rel=1e-12)


def test_a_rate_that_is_never_read_stays_bounded() -> None:
    rate = Rate(SAMPLES, WINDOW_MS)
    for second in range(1_000):
        rate.record(1, second * WINDOW_MS)
    assert len(rate._samples) <= SAMPLES + 1
    assert rate.per_second(999_999) == pytest.approx(SAMPLES / 10.999)


def test_tokens_are_saved_up_to_a_burst_and_may_go_negative() -> None:
    bucket = TokenBucket(SAMPLES, 1)
    assert bucket.tokens(2.0, 0) == 22
    bucket.take(30, 2.0, 0)
    assert bucket.tokens(2.0, 0) == -8
    assert bucket.throttle_ms(2.0, 0) == 4_000
    assert bucket.throttle_ms(2.0, 1_000) == 3_000
    assert bucket.tokens(2.0, 60_000) == 22
    bucket.take(-5, 2.0, 60_000)
    assert bucket.tokens(2.0, 60_000) == 22


def test_a_throttle_time_fits_into_a_response() -> None:
    rate, bucket = Rate(SAMPLES, WINDOW_MS), TokenBucket(SAMPLES, 1)
    rate.record(1e9, 0)
    bucket.take(1e9, 0.001, 0)
    for limit in (0.001, 5e-324):  # the smallest possible quota
        assert rate.throttle_ms(limit, 0) == LONGEST_MS
        assert bucket.throttle_ms(limit, 0) == LONGEST_MS


def test_a_meter_reports_the_mean_delay_of_its_windows() -> None:
    meter = Meter(1_000, SAMPLES, 1)
    assert meter.is_idle(0)
    assert meter.throttle_ms(20_000, 0) == 10_000
    meter.delayed(10_000, 0)
    meter.delayed(5_000, 0)
    assert meter.mean_delay_ms(0) == 7_500
    assert [meter.held(at_ms) for at_ms in (0, 4_999, 5_000, 9_999, 10_000)] == [2, 2, 1, 1, 0]
    assert not meter.is_idle(0)
    assert meter.mean_delay_ms(60_000) == 0
    assert meter.is_idle(60_000)
