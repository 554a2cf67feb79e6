"""Records of open transactions. They take effect when their transaction commits.

A plain record supersedes the pending records under its key: their transactions may end later, but
they lie before it in the log, where compaction would keep the plain one. A plain tombstone, as of
a deleted group, removes them for good.
"""

from collections.abc import Iterator

from penstock.coordinator.storage import RawRecord


class _PendingRecord:
    """A record, and whether a newer record under its key has taken effect."""

    __slots__ = ("order", "raw", "superseded")

    def __init__(self, raw: RawRecord, order: int) -> None:
        self.raw, self.order, self.superseded = raw, order, False


class PendingRecords:
    """The pending records of all producers; fed in log order.

    Only a producer's newest record under each key is kept: a transaction commits as a whole, so
    older ones have no effect. Committing one offset many times costs as much memory as once.
    """

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[bytes, _PendingRecord]] = {}
        self._by_key: dict[bytes, dict[int, _PendingRecord]] = {}
        self._count = 0
        self.changes = 0
        """Changes whenever the set of pending records changes."""

    def __iter__(self) -> Iterator[RawRecord]:
        for pending in self._by_producer.values():
            for each in pending.values():
                yield each.raw

    def add(self, producer_id: int, raw: RawRecord) -> None:
        """Add a record of the producer's open transaction."""
        pending = _PendingRecord(raw, self._count)
        self._count += 1
        self.changes += 1
        of_producer = self._by_producer.setdefault(producer_id, {})
        of_producer.pop(raw.key, None)  # so that the new record goes to the end
        of_producer[raw.key] = pending
        self._by_key.setdefault(raw.key, {})[producer_id] = pending

    def supersede(self, plain: RawRecord) -> None:
        """Note a record outside of transactions."""
        older = self._by_key.get(plain.key)
        if older is None:
            return
        if plain.value is not None:
            for each in older.values():
                each.superseded = True
            return
        self.changes += 1
        for producer_id in older:
            of_producer = self._by_producer[producer_id]
            del of_producer[plain.key]
            if not of_producer:
                del self._by_producer[producer_id]
        del self._by_key[plain.key]

    def end(self, producer_id: int, *, committed: bool) -> list[RawRecord]:
        """End the producer's transaction: the records that take effect now."""
        effective = []
        self.changes += 1
        for ended in self._by_producer.pop(producer_id, {}).values():
            others = self._by_key[ended.raw.key]
            del others[producer_id]
            if not others:
                del self._by_key[ended.raw.key]
            if committed and not ended.superseded:
                effective.append(ended.raw)
                for each in others.values():
                    each.superseded = each.superseded or each.order < ended.order
        return effective
