"""Who wants to hear of what. What is told is the key: a change, or a state of the session."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Subscriptions(Generic[Key]):
    """Callbacks by what they wait for. They run through `call_soon`, never inside `tell`."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon
        self._waiting: dict[Key, dict[Listener[Key], None]] = {}

    def add(self, told: Callable[[Key], None], keys: Iterable[Key]) -> "Listener[Key]":
        listener = Listener(told, tuple(keys), self)
        for key in listener.keys:
            self._waiting.setdefault(key, {})[listener] = None
        return listener

    def wanted(self) -> list[Key]:
        """What somebody waits for."""
        return list(self._waiting)

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def tell(self, key: Key) -> None:
        for listener in self._waiting.get(key, ()):
            self._call_soon(listener.tell, key)

    def remove(self, listener: "Listener[Key]") -> None:
        for key in listener.keys:
            waiting = self._waiting.get(key, {})
            waiting.pop(listener, None)
            if not waiting:
                self._waiting.pop(key, None)


class Listener(Generic[Key]):
    """One callback with its keys. `cancel()` also silences what is on its way."""

    def __init__(
        self, told: Callable[[Key], None], keys: tuple[Key, ...], home: Subscriptions[Key]
    ) -> None:
        self._told: Callable[[Key], None] | None = told
        self._home = home
        self.keys = keys

    def tell(self, key: Key) -> None:
        if self._told is not None:
            self._told(key)

    def cancel(self) -> None:
        self._told = None
        self._home.remove(self)
