"""Requests on their way to ZooKeeper, a few at a time and in order. Belongs to the loop."""

from collections import deque
from collections.abc import Callable
from functools import partial

from kazoo.exceptions import ConnectionLoss

from penstock.metadata.zookeeper.session import Request, SessionThread
from penstock.metadata.zookeeper.translation import NotSent

MOST_IN_FLIGHT = 128
"""Kazoo wakes its thread by a byte in a socket for each request. A few hundred unread ones fill
it, and the loop would stand still on the next.
"""

NO_CONNECTION = 0


class Ticket:
    """One request and who hears of its end: the answer, or the error as a value."""

    __slots__ = ("abandoned", "request", "told")

    def __init__(self, request: Request, told: Callable[[object], None]) -> None:
        self.request, self.told, self.abandoned = request, told, False


class Pipeline:
    """Every ticket is told exactly once, whatever becomes of the connection."""

    def __init__(
        self, session: SessionThread, post: Callable[..., None], most_in_flight: int
    ) -> None:
        self._session, self._post = session, post
        self._limit = min(most_in_flight, MOST_IN_FLIGHT)
        self._waiting: deque[Ticket] = deque()
        self._urgent: deque[Ticket] = deque()
        self._sent: dict[Ticket, None] = {}
        self.connection = NO_CONNECTION

    def send(
        self, request: Request, told: Callable[[object], None], *, urgent: bool = False
    ) -> Ticket:
        """Urgent is what news depends on: it does not wait for a long batch to be through."""
        ticket = Ticket(request, told)
        (self._urgent if urgent else self._waiting).append(ticket)
        self._fill()
        return ticket

    def lose(self) -> None:
        """The connection has gone: nobody knows what became of the requests that were sent."""
        self.connection = NO_CONNECTION
        sent, waiting = list(self._sent), [*self._urgent, *self._waiting]
        for left in (self._sent, self._urgent, self._waiting):
            left.clear()
        for ticket in sent:
            ticket.told(ConnectionLoss())
        for ticket in waiting:
            ticket.told(NotSent())

    def _fill(self) -> None:
        while (queue := self._urgent or self._waiting) and len(self._sent) < self._limit:
            ticket = queue.popleft()
            if ticket.abandoned:
                continue
            self._sent[ticket] = None
            answered = partial(self._post, self._answered, ticket)
            if not self._session.submit(self.connection, ticket.request, answered):
                # In the loop's next turn, when it has heard of that as well: whoever tries again
                # at once would be refused for ever, and the loop stand still.
                del self._sent[ticket]
                self._post(ticket.told, NotSent())

    def _answered(self, ticket: Ticket, answer: object) -> None:
        if ticket not in self._sent:
            return  # it was told that the connection had gone
        del self._sent[ticket]
        ticket.told(answer)
        self._fill()
