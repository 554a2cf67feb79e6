"""One request that waits, until it is answered, fails, expires or is cancelled."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from penstock.broker.parked import Parked
from penstock.loop import Handle

R = TypeVar("R")


class Waiter:
    """A parked request; `cancel` removes it."""

    __slots__ = ("_done", "_failed", "_forget", "_parked", "timer")

    def __init__(
        self,
        parked: Parked[R],
        done: Callable[[R], object],
        failed: Callable[[Exception], object] | None,
        forget: Callable[["Waiter", Iterable[Hashable]], object],
    ) -> None:
        self._parked, self._done, self._failed, self._forget = parked, done, failed, forget
        self.timer: Handle | None = None

    @property
    def gives_way(self) -> bool:
        return self._parked.gives_way

    @property
    def operation(self) -> str:
        """The kind of wait: for acks, for records, or for anything else."""
        if self._parked.has_acted:
            return "Produce"
        return "Other" if self._parked.notice is None else "Fetch"

    def notice(self, key: Hashable) -> None:
        if self._parked.notice is not None:
            self._parked.notice(key)

    def attempt(self) -> None:
        try:
            response = self._parked.attempt()
            if response is not None:
                self.cancel()
                self._done(response)
        except Exception as error:  # noqa: BLE001  the session's boundary; others go on waiting
            self._fail(error)

    def expire(self) -> None:
        self.cancel()
        try:
            self._done(self._parked.expire())
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self._failed is None:
            raise error
        self.cancel()
        self._failed(error)

    def cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._forget(self, self._parked.keys)
