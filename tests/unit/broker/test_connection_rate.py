"""`max.connection.creation.rate`: how many connections are accepted in a second."""

from penstock.broker.net.connection_rate import ConnectionRate


def test_what_passes_the_rate_waits_for_the_next_second() -> None:
    rate = ConnectionRate()
    waits = []
    for now_ms in (5_000, 5_100, 5_200, 5_900, 6_000):
        wait_ms = rate.wait_ms(now_ms, 2)
        if not wait_ms:
            rate.accepted()
        waits.append(wait_ms)
    assert waits == [0, 0, 800, 100, 0]


def test_a_rate_of_zero_accepts_no_connection() -> None:
    assert ConnectionRate().wait_ms(5_000, 0) == 1_000
