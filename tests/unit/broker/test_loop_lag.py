"""How late the event loop is, as `/metrics` reports it."""

from penstock.broker.pages.loop_lag import INTERVAL_MS, KEPT, LoopLag
from penstock.clock import SystemClock


def test_the_greatest_delay_of_the_last_minute_is_reported() -> None:
    lag = LoopLag(SystemClock())
    assert lag.greatest_ms == 0
    for waited_ms in (INTERVAL_MS - 1, INTERVAL_MS + 40, INTERVAL_MS + 3):
        lag.waited(waited_ms)
    assert lag.greatest_ms == 40
    for _ in range(KEPT):
        lag.waited(INTERVAL_MS + 5)
    assert lag.greatest_ms == 5
