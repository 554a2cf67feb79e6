"""The handler result for a request that waits for data, acks or group members."""

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)

MAX_CLIENT_WAIT_MS: Final = 600_000
"""Bounds the wait that a client requests: the field allows 24 days. Equals the default of
`connections.max.idle.ms`.
"""


def client_wait_ms(asked_ms: int) -> int:
    """The wait that a client requests, within bounds."""
    return min(max(asked_ms, 0), MAX_CLIENT_WAIT_MS)


class Parked(Generic[R_co]):
    """A request that waits for a change of one of `keys`, at most for `wait_ms`.

    `attempt` returns the response once it is ready, None before; `expire` returns it at the
    deadline. `notice` is called with each changed key before an attempt. A request with `has_acted`
    waits only for its outcome, so requests of its kind behind it may run too. One with `gives_way`
    expires as soon as its client sends another request.
    """

    __slots__ = ("attempt", "expire", "gives_way", "has_acted", "keys", "notice", "wait_ms")

    def __init__(
        self,
        keys: Iterable[Hashable],
        wait_ms: int,
        attempt: Callable[[], R_co | None],
        expire: Callable[[], R_co],
        notice: Callable[[Hashable], object] | None = None,
        *,
        has_acted: bool = False,
        gives_way: bool = False,
    ) -> None:
        self.keys = tuple(keys)
        self.wait_ms = wait_ms
        self.attempt = attempt
        self.expire = expire
        self.notice = notice
        self.has_acted = has_acted
        self.gives_way = gives_way
