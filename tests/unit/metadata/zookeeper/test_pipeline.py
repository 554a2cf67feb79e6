"""Requests to ZooKeeper: order, the number in flight, and lost connections."""

from collections.abc import Callable
from functools import partial

import pytest
from kazoo.exceptions import ConnectionLoss

from penstock.metadata.zookeeper.pipeline import MOST_IN_FLIGHT, RequestPipeline
from penstock.metadata.zookeeper.session import Request
from penstock.metadata.zookeeper.translation import NotSent


class FakeSession:
    """Accepts requests of one connection, and answers when the test asks for it."""

    def __init__(self) -> None:
        self.connection = 1
        self.sent: list[tuple[Request, Callable[[object], None]]] = []

    def submit(self, connection: int, request: Request, answered: Callable[[object], None]) -> bool:
        if connection != self.connection:
            return False
        self.sent.append((request, answered))
        return True

    def answer(self, index: int = 0) -> None:
        request, answered = self.sent.pop(index)
        answered(f"{request}!")


class Wired:
    """A pipeline with at most two requests in flight on the session's connection 1."""

    def __init__(self, limit: int = 2) -> None:
        self.session = FakeSession()
        self.pipeline = RequestPipeline(
            self.session,  # type: ignore[arg-type]
            lambda function, *args: function(*args),
            limit,
        )
        self.pipeline.connection = 1
        self.reported: list[object] = []

    def send(self, *names: str, urgent: bool = False) -> None:
        for name in names:
            self.pipeline.send(name, self.reported.append, urgent=urgent)

    @property
    def under_way(self) -> list[Request]:
        return [request for request, _ in self.session.sent]


@pytest.fixture
def wired() -> Wired:
    return Wired()


def test_a_limited_number_is_in_flight_and_the_rest_follows_in_order(wired: Wired) -> None:
    wired.send("a", "b", "c", "d")
    assert wired.under_way == ["a", "b"]
    for _ in range(4):
        wired.session.answer()
    assert wired.reported == ["a!", "b!", "c!", "d!"]


def test_urgent_requests_go_before_waiting_ones(wired: Wired) -> None:
    wired.send("a", "b", "c")
    wired.send("news", "more news", urgent=True)
    for _ in range(5):
        wired.session.answer()
    assert wired.reported == ["a!", "b!", "news!", "more news!", "c!"]


def test_after_a_lost_connection_only_sent_requests_have_an_unknown_outcome(wired: Wired) -> None:
    wired.send("a", "b", "c")
    wired.session.answer()
    wired.send("d")
    wired.pipeline.lose()
    assert wired.reported[0] == "a!"
    assert [type(each) for each in wired.reported[1:]] == [ConnectionLoss, ConnectionLoss, NotSent]


def test_a_late_answer_is_ignored(wired: Wired) -> None:
    wired.send("a")
    wired.pipeline.lose()
    wired.session.answer()
    assert len(wired.reported) == 1


def test_a_request_without_a_connection_fails_as_not_sent(wired: Wired) -> None:
    wired.session.connection = 2
    wired.send("a", "b", "c")
    assert [type(each) for each in wired.reported] == [NotSent] * 3
    assert wired.under_way == []


def test_a_request_never_fails_in_the_turn_it_was_made(wired: Wired) -> None:
    """The loop learns of the loss in a later turn; an immediate retry would prevent that."""
    posted: list[Callable[[], None]] = []
    wired.pipeline = RequestPipeline(
        wired.session,  # type: ignore[arg-type]
        lambda function, *args: posted.append(partial(function, *args)),
        2,
    )
    wired.send("a")
    assert wired.reported == []
    posted.pop()()
    assert [type(each) for each in wired.reported] == [NotSent]


def test_an_abandoned_request_is_not_sent(wired: Wired) -> None:
    wired.send("a", "b")
    wired.pipeline.send("c", wired.reported.append).abandoned = True
    wired.send("d")
    wired.session.answer()
    assert wired.under_way == ["b", "d"]


def test_the_limit_keeps_the_loop_from_blocking() -> None:
    wired = Wired(limit=10_000)
    wired.send(*map(str, range(MOST_IN_FLIGHT + 5)))
    assert len(wired.under_way) == MOST_IN_FLIGHT
