"""Values that several metrics of one page read, computed once."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Computed lazily while the first metric is rendered, and cached for the others."""

    def __init__(self, source: Iterable[T]) -> None:
        self._source = iter(source)
        self._found: list[T] = []

    def __iter__(self) -> Iterator[T]:
        yield from self._found
        for each in self._source:
            self._found.append(each)
            yield each
