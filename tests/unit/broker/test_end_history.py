"""When a partition's end offset passed a given offset."""

from penstock.broker.peers.end_history import KEPT, EndHistory


def test_an_offset_was_passed_when_a_later_end_was_first_seen() -> None:
    ends = EndHistory(10, 1000)
    ends.observe(10, 2000)
    ends.observe(15, 3000)
    ends.observe(20, 4000)
    assert ends.last == 20
    assert ends.passed_ms(3) == 1000, "it is older than that"
    assert ends.passed_ms(10) == 3000
    assert ends.passed_ms(19) == 4000


def test_a_truncated_log_starts_a_new_history() -> None:
    ends = EndHistory(10, 1000)
    ends.observe(4, 2000)
    assert (ends.last, ends.passed_ms(0)) == (4, 2000)


def test_many_ends_fit_bounded_memory_and_the_newest_stays_exact() -> None:
    ends = EndHistory(0, 0)
    for number in range(1, 10 * KEPT):
        ends.observe(number, number)
    assert len(ends._seen) <= KEPT + 1
    assert ends.passed_ms(10 * KEPT - 2) == 10 * KEPT - 1
    assert ends.passed_ms(100) >= 101
