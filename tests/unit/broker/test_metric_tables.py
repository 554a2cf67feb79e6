"""Parts of the metrics page that need no broker."""

from collections.abc import Iterator

from penstock.broker.pages.loop_lag import LoopLag
from penstock.broker.pages.request_metrics import HIGHEST, LOWEST, histogram
from penstock.broker.pages.shared import Shared
from penstock.broker.parked import Parked
from penstock.broker.waiters import Waiters
from penstock.clock import SystemClock
from penstock.testing.loop import ManualLoop


def test_a_histogram_counts_what_is_below_each_bound() -> None:
    counts = [0] * 64
    counts[3] += 2  # a few nanoseconds
    counts[(70_000).bit_length()] += 5
    counts[40] += 1
    samples = list(histogram("Produce", counts, 3_000_000_000))
    buckets = [each.value for each in samples if each.suffix == "_bucket"]
    assert len(buckets) == HIGHEST - LOWEST + 2
    assert buckets[:2] == [2, 7]
    assert buckets[-2:] == [7, 8], "only the last bound has the slowest"
    assert [(each.suffix, each.value) for each in samples[-2:]] == [("_sum", 3.0), ("_count", 8)]


def test_a_shared_value_is_computed_once_when_first_read() -> None:
    asked = []

    def found() -> Iterator[int]:
        for number in range(3):
            asked.append(number)
            yield number

    shared = Shared(found())
    assert asked == []
    assert list(shared) == list(shared) == [0, 1, 2]
    assert asked == [0, 1, 2]


def test_a_loop_is_idle_while_its_thread_does_not_run() -> None:
    loop = LoopLag(SystemClock())
    assert loop.idle == 1.0
    loop.waited(100, busy_ns=25_000_000)
    loop.waited(300, busy_ns=75_000_000)
    assert loop.idle == 0.75
    loop.waited(100, busy_ns=900_000_000)
    assert loop.idle == 0.0


def test_waiting_requests_are_counted_by_what_they_wait_for() -> None:
    waiters = Waiters(ManualLoop())

    def parked(*, notice: bool = False, has_acted: bool = False) -> Parked[int]:
        return Parked(
            ("a", "b"),
            1000,
            lambda: None,
            lambda: 0,
            (lambda _: None) if notice else None,
            has_acted=has_acted,
        )

    for each in (parked(has_acted=True), parked(notice=True), parked(notice=True), parked()):
        waiters.park(each, lambda _: None)
    assert waiters.sizes() == {"Produce": 1, "Fetch": 2, "Other": 1}
    assert len(waiters) == 4
