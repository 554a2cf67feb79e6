"""Requests in flight to ZooKeeper, in order and limited in number. Belongs to the loop."""

from collections import deque
from collections.abc import Callable
from functools import partial

from kazoo.exceptions import ConnectionLoss

from penstock.metadata.zookeeper.session import Request, SessionThread
from penstock.metadata.zookeeper.translation import NotSent

MOST_IN_FLIGHT = 128
"""Kazoo wakes its thread by one byte in a socket for each request. A few hundred unread bytes fill
the socket, and the next request would block the loop.
"""

NO_CONNECTION = 0


class PendingRequest:
    """One request; `on_answer` gets the answer, or the error as a value."""

    __slots__ = ("abandoned", "on_answer", "request")

    def __init__(self, request: Request, on_answer: Callable[[object], None]) -> None:
        self.request, self.on_answer, self.abandoned = request, on_answer, False


class RequestPipeline:
    """Every request is answered exactly once, even if the connection is lost."""

    def __init__(
        self, session: SessionThread, post: Callable[..., None], most_in_flight: int
    ) -> None:
        self._session, self._post = session, post
        self._limit = min(most_in_flight, MOST_IN_FLIGHT)
        self._waiting: deque[PendingRequest] = deque()
        self._urgent: deque[PendingRequest] = deque()
        self._sent: dict[PendingRequest, None] = {}
        self.connection = NO_CONNECTION

    def send(
        self, request: Request, on_answer: Callable[[object], None], *, urgent: bool = False
    ) -> PendingRequest:
        """Urgent requests, such as those that set watches, do not wait for a long batch."""
        pending = PendingRequest(request, on_answer)
        (self._urgent if urgent else self._waiting).append(pending)
        self._fill()
        return pending

    def lose(self) -> None:
        """The connection is lost: the outcome of the requests that were sent is unknown."""
        self.connection = NO_CONNECTION
        sent, waiting = list(self._sent), [*self._urgent, *self._waiting]
        for left in (self._sent, self._urgent, self._waiting):
            left.clear()
        for pending in sent:
            pending.on_answer(ConnectionLoss())
        for pending in waiting:
            pending.on_answer(NotSent())

    def _fill(self) -> None:
        while (queue := self._urgent or self._waiting) and len(self._sent) < self._limit:
            pending = queue.popleft()
            if pending.abandoned:
                continue
            self._sent[pending] = None
            answered = partial(self._post, self._answered, pending)
            if not self._session.submit(self.connection, pending.request, answered):
                # Answer in the loop's next turn, when the loop knows of the loss too. A caller that
                # retried at once would be refused for ever, and block the loop.
                del self._sent[pending]
                self._post(pending.on_answer, NotSent())

    def _answered(self, pending: PendingRequest, answer: object) -> None:
        if pending not in self._sent:
            return  # answered already, when the connection was lost
        del self._sent[pending]
        pending.on_answer(answer)
        self._fill()
