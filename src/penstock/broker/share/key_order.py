"""Decides which records of a share-partition may be delivered if each key keeps its order."""

from collections import deque
from collections.abc import Callable, Mapping


class KeyOrder:
    """A record waits for all earlier unfinished records with its key. Records without a key wait
    for none. Keys are learned in offset order, as batches are read.
    """

    def __init__(self, start_offset: int) -> None:
        self.known_to = start_offset
        """The keys of all records before this offset are known."""
        self._key_of: dict[int, bytes] = {}
        self._waiting: dict[bytes, deque[int]] = {}
        """Offsets by key, ascending; finished ones are dropped when they are encountered."""

    def learn(self, last: int, keys: Mapping[int, bytes]) -> None:
        """Add the keys of all records up to `last`; records without a key are absent."""
        for offset, key in keys.items():
            if self.known_to <= offset <= last:
                self._key_of[offset] = key
                self._waiting.setdefault(key, deque()).append(offset)
        self.known_to = max(self.known_to, last + 1)

    def is_first(self, offset: int, is_finished: Callable[[int], bool]) -> bool:
        """Whether no earlier unfinished record has the same key."""
        key = self._key_of.get(offset)
        if key is None:
            return True
        waiting = self._waiting[key]
        while waiting[0] < offset and is_finished(waiting[0]):
            del self._key_of[waiting.popleft()]
        return waiting[0] == offset

    def starts_at(self, offset: int) -> None:
        """Drop everything before `offset`: it is finished."""
        self.known_to = max(self.known_to, offset)
        while self._key_of and (first := next(iter(self._key_of))) < offset:
            waiting = self._waiting[key := self._key_of.pop(first)]
            waiting.popleft()
            if not waiting:
                del self._waiting[key]
