"""Holds requests that wait for data, acks or group members: Kafka's purgatory.

A handler returns `Parked`, with the keys it waits for, instead of a response. `changed(key)` makes
the request try again in the loop's next turn; many changes in one turn cost one attempt. At its
deadline the request answers with what there is.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Final, TypeVar

from penstock.broker.parked import Parked
from penstock.broker.waiter import Waiter
from penstock.loop import Loop

R = TypeVar("R")

AT_A_TIME: Final = 16
"""Waiters woken per loop turn, so that a large group's members do not starve other requests."""


class Waiters:
    """All parked requests by key. Belongs to the event loop."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._by_key: dict[Hashable, dict[Waiter, None]] = {}
        self._changed: dict[Hashable, None] = {}
        self._due: dict[Waiter, None] = {}
        """Waiters to wake after a change, in order."""
        self._is_called = False

    def park(
        self,
        parked: Parked[R],
        done: Callable[[R], object],
        failed: Callable[[Exception], object] | None = None,
    ) -> Waiter:
        """Call `done` with the response, or `failed` with the exception of an attempt."""
        waiter = Waiter(parked, done, failed, self.forget)
        waiter.timer = self._loop.call_later(parked.wait_ms / 1000, waiter.expire)
        for key in parked.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        return waiter

    def future(self, parked: Parked[R]) -> asyncio.Future[R]:
        """Park, for a coroutine that awaits the response."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def done(response: R) -> None:
            if not answer.done():
                answer.set_result(response)

        waiter = self.park(parked, done)
        answer.add_done_callback(lambda _: waiter.cancel())
        return answer

    def forget(self, waiter: Waiter, keys: Iterable[Hashable]) -> None:
        for key in keys:
            waiting = self._by_key.get(key)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._by_key[key]
        self._due.pop(waiter, None)

    def changed(self, key: Hashable) -> None:
        """Wake the waiters of `key` in the loop's next turn, or soon after."""
        if key in self._by_key:
            self._changed[key] = None
            self._call()

    def _call(self) -> None:
        if not self._is_called:
            self._is_called = True
            self._loop.call_soon(self._attempt)

    def _attempt(self) -> None:
        keys, self._changed = self._changed, {}
        for key in keys:
            for waiter in self._by_key.get(key, ()):
                waiter.notice(key)
                self._due[waiter] = None
        self._is_called = False
        now_due = list(islice(self._due, AT_A_TIME))
        if len(now_due) < len(self._due):
            self._call()
        try:
            for waiter in now_due:
                if waiter in self._due:  # an earlier attempt may have cancelled it
                    del self._due[waiter]
                    waiter.attempt()
        finally:
            if self._due:  # an attempt raised: the other waiters still get their turn
                self._call()

    def _all(self) -> set[Waiter]:
        return {waiter for waiting in self._by_key.values() for waiter in waiting}

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._all())

    def fetching(self, key: Hashable) -> int:
        """How many consumers wait for records under this key; followers, which give way, do not
        count.
        """
        found = [each for each in self._by_key.get(key, ()) if not each.gives_way]
        return len([each for each in found if each.operation == "Fetch"])

    def sizes(self) -> dict[str, int]:
        """How many requests wait, by operation."""
        found = {"Produce": 0, "Fetch": 0, "Other": 0}
        for waiter in self._all():
            found[waiter.operation] += 1
        return found
