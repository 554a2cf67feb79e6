"""When a read that stops after a silence ends."""

import pytest

from penstock.sdk.idle import JOIN_S, POLL_S, Idle


def waits(idle: Idle, batch: list[int], *, has_joined: bool, most: int = 1000) -> int:
    """The number of polls until the end."""
    return next(n for n in range(1, most) if idle.is_over(batch, has_joined=has_joined))


@pytest.mark.parametrize(("idle_s", "count"), [(0.1, 1), (0.5, 1), (1.5, 3), (1.6, 4)])
def test_the_read_ends_after_the_idle_time_without_records(idle_s: float, count: int) -> None:
    assert waits(Idle(idle_s), [], has_joined=True) == count


def test_a_record_restarts_the_idle_time() -> None:
    idle = Idle(1)
    found = [idle.is_over(batch, has_joined=True) for batch in ([], [1], [], [])]
    assert found == [False, False, False, True]


def test_the_time_to_join_a_group_does_not_count() -> None:
    idle = Idle(1)
    assert not any(idle.is_over([], has_joined=False) for _ in range(20))
    assert waits(idle, [], has_joined=True) == 2


def test_a_group_that_cannot_be_joined_is_not_waited_for_for_ever() -> None:
    assert waits(Idle(1), [], has_joined=False) == JOIN_S / POLL_S + 2


def test_without_a_limit_the_read_does_not_end() -> None:
    idle = Idle(None)
    assert not any(idle.is_over([], has_joined=True) for _ in range(200))
