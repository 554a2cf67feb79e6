"""When a process that died is restarted."""

from penstock.local.restarts import LOOP, STEADY_MS, restart


def test_the_first_restart_is_immediate() -> None:
    assert restart(STEADY_MS, 0) == (0, 1)
    assert restart(10, 0) == (0, 1)


def test_a_process_that_keeps_dying_is_restarted_with_growing_delays() -> None:
    deaths, delays = 0, []
    for _ in range(9):
        again = restart(10, deaths)
        deaths = again.quick_deaths
        delays.append(again.delay_ms)
        assert again.is_loop == (deaths >= LOOP)
    assert delays == sorted(delays)
    assert delays[-1] == 30_000
    assert sum(delays[:4]) < 1000


def test_a_long_run_resets_the_delay() -> None:
    assert restart(STEADY_MS, 8) == (0, 1)
