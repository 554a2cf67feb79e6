"""Records of open transactions: they count once a marker commits them, unless newer ones do.

A plain record under the same key is newer than all that wait: they are superseded, though their
transaction may still move the key. A plain tombstone takes them back altogether.
"""

from collections.abc import Iterator

from penstock.coordinator.storage import RawRecord


class _Waiting:
    """A record, and whether a newer one under its key counts already."""

    __slots__ = ("order", "raw", "superseded")

    def __init__(self, raw: RawRecord, order: int) -> None:
        self.raw, self.order, self.superseded = raw, order, False


class PendingRecords:
    """Fed in the order of the log."""

    def __init__(self) -> None:
        self._by_producer: dict[int, list[_Waiting]] = {}
        self._by_key: dict[bytes, list[_Waiting]] = {}
        self._count = 0

    def __iter__(self) -> Iterator[RawRecord]:
        for waiting in self._by_producer.values():
            for each in waiting:
                yield each.raw

    def add(self, producer_id: int, raw: RawRecord) -> None:
        """A record of the producer's transaction."""
        waiting = _Waiting(raw, self._count)
        self._count += 1
        self._by_producer.setdefault(producer_id, []).append(waiting)
        self._by_key.setdefault(raw.key, []).append(waiting)

    def passed(self, raw: RawRecord) -> None:
        """A record outside of transactions is in the log."""
        older = self._by_key.get(raw.key)
        if older is None:
            return
        if raw.value is not None:
            for each in older:
                each.superseded = True
            return
        for producer_id, waiting in list(self._by_producer.items()):
            kept = [each for each in waiting if each.raw.key != raw.key]
            if kept:
                self._by_producer[producer_id] = kept
            else:
                del self._by_producer[producer_id]
        del self._by_key[raw.key]

    def end(self, producer_id: int, *, committed: bool) -> list[RawRecord]:
        """Its transaction is over: the records that count from now on."""
        counting = []
        for ended in self._by_producer.pop(producer_id, []):
            others = self._by_key[ended.raw.key]
            others.remove(ended)
            if not others:
                del self._by_key[ended.raw.key]
            if committed and not ended.superseded:
                counting.append(ended.raw)
                for each in others:
                    each.superseded = each.superseded or each.order < ended.order
        return counting
