"""Parked requests: what wakes them, when they expire, and in which order they run."""

from typing import cast

import pytest

from penstock.broker.context import Context
from penstock.broker.parked import MAX_CLIENT_WAIT_MS, Parked, client_wait_ms
from penstock.broker.produce.pending import parked as produce_parked
from penstock.broker.waiters import AT_A_TIME, Waiters
from penstock.testing.loop import ManualLoop
from penstock.wire.messages.produce import ProduceRequest, ProduceResponse


class Waiting:
    """A request that is ready once `ready` is set, and counts its attempts."""

    def __init__(self, *keys: str, wait_ms: int = 500) -> None:
        self.ready, self.attempts, self.answers = False, 0, list[str]()
        self.parked = Parked(keys, wait_ms, self.attempt, lambda: "expired")

    def attempt(self) -> str | None:
        self.attempts += 1
        return "done" if self.ready else None


def parked(loop: ManualLoop, *keys: str) -> tuple[Waiters, Waiting]:
    waiters, waiting = Waiters(loop), Waiting(*keys)
    waiters.park(waiting.parked, waiting.answers.append)
    return waiters, waiting


def test_a_change_retries_the_request_in_the_next_turn() -> None:
    loop = ManualLoop()
    waiters, waiting = parked(loop, "a")
    waiting.ready = True
    waiters.changed("a")
    assert waiting.answers == []
    loop.advance()
    assert waiting.answers == ["done"]
    assert (len(waiters), loop.waiting) == (0, 0)


def test_many_changes_in_one_turn_cost_one_attempt() -> None:
    loop = ManualLoop()
    waiters, waiting = parked(loop, "a", "b")
    for _ in range(10):
        waiters.changed("a")
        waiters.changed("b")
    loop.advance()
    assert waiting.attempts == 1
    assert len(waiters) == 1


def test_a_change_of_another_key_wakes_no_waiter() -> None:
    loop = ManualLoop()
    waiters, waiting = parked(loop, "a")
    waiters.changed("b")
    loop.advance()
    assert waiting.attempts == 0


@pytest.mark.row("A119")
def test_at_its_deadline_a_request_answers_with_the_available_result() -> None:
    loop = ManualLoop()
    waiters, waiting = parked(loop, "a")
    loop.advance(0.499)
    assert waiting.answers == []
    loop.advance(0.002)
    assert waiting.answers == ["expired"]
    waiters.changed("a")
    loop.advance(1)
    assert (waiting.answers, waiting.attempts) == (["expired"], 0)


def test_a_cancelled_request_never_answers() -> None:
    loop = ManualLoop()
    waiters, waiting = Waiters(loop), Waiting("a")
    waiter = waiters.park(waiting.parked, waiting.answers.append)
    waiting.ready = True
    waiters.changed("a")
    waiter.cancel()
    loop.advance(1)
    assert waiting.answers == []


def test_an_answer_may_park_again_and_cause_changes() -> None:
    """A session that was answered goes on with its next request inside the callback."""
    loop = ManualLoop()
    waiters, first = Waiters(loop), Waiting("a")
    second = Waiting("a")

    def go_on(_answer: str) -> None:
        waiters.park(second.parked, second.answers.append)
        second.ready = True
        waiters.changed("a")

    waiters.park(first.parked, go_on)
    first.ready = True
    waiters.changed("a")
    loop.advance()
    assert second.answers == ["done"]


def test_a_request_learns_what_changed_before_it_retries() -> None:
    loop, noticed = ManualLoop(), list[object]()
    waiters = Waiters(loop)
    waiters.park(Parked("abc", 500, lambda: None, lambda: "", noticed.append), lambda _: None)
    for key in "aba":
        waiters.changed(key)
    loop.advance()
    assert noticed == ["a", "b"]


def test_many_waiters_for_one_key_do_not_starve_other_callbacks() -> None:
    loop = ManualLoop()
    waiters = Waiters(loop)
    crowd = [Waiting("a") for _ in range(3 * AT_A_TIME)]
    for each in crowd:
        each.ready = True
        waiters.park(each.parked, each.answers.append)
    answered_before: list[int] = []
    waiters.changed("a")
    loop.call_soon(lambda: answered_before.append(sum(len(each.answers) for each in crowd)))
    loop.advance()
    assert answered_before == [AT_A_TIME]
    assert all(each.answers == ["done"] for each in crowd)
    assert all(each.attempts == 1 for each in crowd)
    assert len(waiters) == 0


def test_a_waiter_cancelled_before_its_turn_does_not_retry() -> None:
    loop = ManualLoop()
    waiters = Waiters(loop)
    crowd = [Waiting("a") for _ in range(2 * AT_A_TIME)]
    places = [waiters.park(each.parked, each.answers.append) for each in crowd]
    waiters.changed("a")
    loop.call_soon(places[-1].cancel)
    loop.advance()
    assert [each.attempts for each in crowd] == [1] * (2 * AT_A_TIME - 1) + [0]


def test_a_change_between_two_turns_wakes_waiters_that_have_tried() -> None:
    loop = ManualLoop()
    waiters = Waiters(loop)
    crowd = [Waiting("a") for _ in range(2 * AT_A_TIME)]
    for each in crowd:
        waiters.park(each.parked, each.answers.append)

    def ready() -> None:
        for each in crowd:
            each.ready = True
        waiters.changed("a")

    waiters.changed("a")
    loop.call_soon(ready)
    loop.advance()
    assert all(each.answers == ["done"] for each in crowd)


def test_a_client_cannot_make_a_request_wait_for_days() -> None:
    request = ProduceRequest(acks=-1, timeout_ms=2**31 - 1)
    assert (
        produce_parked(request, ProduceResponse(), [], cast("Context", None)).wait_ms
        == MAX_CLIENT_WAIT_MS
    )
    assert client_wait_ms(30_000) == 30_000
    assert client_wait_ms(-(2**31)) == 0


def test_a_failed_attempt_does_not_keep_others_from_retrying() -> None:
    class BugError(Exception):
        pass

    def fail() -> str | None:
        raise BugError

    loop = ManualLoop()
    waiters, waiting = Waiters(loop), Waiting("a")
    waiters.park(Parked(["a"], 500, fail, lambda: "expired"), waiting.answers.append)
    waiters.park(waiting.parked, waiting.answers.append)
    waiting.ready = True
    waiters.changed("a")
    with pytest.raises(BugError):
        loop.advance()
    loop.advance()
    assert waiting.answers == ["done"]
