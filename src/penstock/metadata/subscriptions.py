"""Subscriptions to changes of nodes or to states of the session, by key."""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Subscriptions(Generic[Key]):
    """Callbacks by key. They run through `call_soon`, never inside `notify`."""

    def __init__(self, call_soon: Callable[..., object]) -> None:
        self._call_soon = call_soon
        self._by_key: dict[Key, dict[KeySubscription[Key], None]] = {}

    def add(self, callback: Callable[[Key], None], keys: Iterable[Key]) -> "KeySubscription[Key]":
        added = KeySubscription(callback, tuple(keys), self)
        for key in added.keys:
            self._by_key.setdefault(key, {})[added] = None
        return added

    def watched(self) -> list[Key]:
        """The keys that have a subscription."""
        return list(self._by_key)

    def __contains__(self, key: Key) -> bool:
        return key in self._by_key

    def notify(self, key: Key) -> None:
        for each in self._by_key.get(key, ()):
            self._call_soon(each.notify, key)

    def remove(self, subscription: "KeySubscription[Key]") -> None:
        for key in subscription.keys:
            others = self._by_key.get(key, {})
            others.pop(subscription, None)
            if not others:
                self._by_key.pop(key, None)


class KeySubscription(Generic[Key]):
    """One callback with its keys. `cancel()` also stops calls that are already scheduled."""

    def __init__(
        self, callback: Callable[[Key], None], keys: tuple[Key, ...], owner: Subscriptions[Key]
    ) -> None:
        self._callback: Callable[[Key], None] | None = callback
        self._owner = owner
        self.keys = keys

    def notify(self, key: Key) -> None:
        if self._callback is not None:
            self._callback(key)

    def cancel(self) -> None:
        self._callback = None
        self._owner.remove(self)
