"""Handlers that are looked up, and their modules imported, at first use."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from penstock.broker.context import AnyHandler


class LazyHandlers(Mapping[int, AnyHandler]):
    """Handlers by API key; `eager` ones are loaded at once. Listing the keys imports nothing."""

    def __init__(
        self, find: Mapping[int, Callable[[], AnyHandler]], eager: Iterable[int] = ()
    ) -> None:
        self._find = find
        self._found = {key: find[key]() for key in eager}

    def __getitem__(self, key: int) -> AnyHandler:
        handler = self._found.get(key)
        if handler is None:
            handler = self._found[key] = self._find[key]()
        return handler

    def __iter__(self) -> Iterator[int]:
        return iter(self._find)

    def __len__(self) -> int:
        return len(self._find)


def each(
    handlers: Mapping[int, AnyHandler], change: Callable[[int, AnyHandler], AnyHandler]
) -> LazyHandlers:
    """The handlers, each passed through `change` at first use."""

    def found(key: int) -> Callable[[], AnyHandler]:
        return lambda: change(key, handlers[key])

    return LazyHandlers({key: found(key) for key in handlers})
