"""Keeps the responses of one connection in the order of its requests."""

from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from penstock.broker.net.dispatch import Request
from penstock.broker.waiter import Waiter
from penstock.log.lookup import LogSlice

Pieces: TypeAlias = "Sequence[memoryview | LogSlice]"

MAX_IN_LINE: Final = 256
"""Produce requests of one connection that may wait for acks at the same time."""


class InLine:
    """A request whose response must be sent in order; `reply` is None until it is known."""

    __slots__ = ("reply", "request", "waiter")

    def __init__(self, request: Request, reply: "Pieces | None" = None) -> None:
        self.request, self.reply = request, reply
        request.message = None  # its views would keep the frame in memory
        self.waiter: Waiter | None = None


class ReplyLine:
    """Produce requests that wait for acks, and the replies to requests behind them."""

    def __init__(self) -> None:
        self.waiting: deque[InLine] = deque()

    def append(self, request: Request, reply: "Pieces | None" = None) -> InLine:
        in_line = InLine(request, reply)
        self.waiting.append(in_line)
        return in_line

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= MAX_IN_LINE

    def ready(self) -> "list[memoryview | LogSlice]":
        """Take what can be sent now: the replies up to the first one that is not known yet."""
        pieces: list[memoryview | LogSlice] = []
        while self.waiting and self.waiting[0].reply is not None:
            pieces.extend(self.waiting.popleft().reply or ())
        return pieces

    def cancel(self) -> None:
        for in_line in self.waiting:
            if in_line.waiter is not None and in_line.reply is None:
                in_line.waiter.cancel()
        self.waiting.clear()
