"""A request that waits for data, acks or group members: what a handler returns then."""

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

R_co = TypeVar("R_co", covariant=True)

MAX_CLIENT_WAIT_MS: Final = 600_000
"""Bounds the wait that a client asks for: the field allows 24 days. The default of
`connections.max.idle.ms`.
"""


def client_wait_ms(asked_ms: int) -> int:
    """The wait that a client asks for, within bounds."""
    return min(max(asked_ms, 0), MAX_CLIENT_WAIT_MS)


class Parked(Generic[R_co]):
    """A request that waits for a change under one of `keys`, at most for `wait_ms`.

    `attempt` returns the response once it is ready, None before; `expire` returns it at the end.
    `notice` is called with each changed key before an attempt. A request that `has_acted` only
    waits for its outcome, so those of its kind behind it may act too. One that `gives_way` expires
    as soon as its client sends anything else.
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
