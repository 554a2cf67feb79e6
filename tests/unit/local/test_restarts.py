"""When a process that died is started again."""

from penstock.local.restarts import LOOP, STEADY_MS, restart


def test_the_first_death_costs_no_time() -> None:
    assert restart(STEADY_MS, 0) == (0, 1)
    assert restart(10, 0) == (0, 1)


def test_a_process_that_cannot_live_is_started_ever_more_rarely() -> None:
    deaths, delays = 0, []
    for _ in range(9):
        again = restart(10, deaths)
        deaths = again.quick_deaths
        delays.append(again.delay_ms)
        assert again.is_loop == (deaths >= LOOP)
    assert delays == sorted(delays)
    assert delays[-1] == 30_000
    assert sum(delays[:4]) < 1000


def test_a_long_life_is_a_new_beginning() -> None:
    assert restart(STEADY_MS, 8) == (0, 1)
