"""One partition of a delay or retry topic: what its records mean for the index. No I/O.

A schedule is a chain of records with one key. A client writes the first, its origin; the service
appends the next one each time it fires. The newest origin of a key counts. A tombstone ends all
chains of the key whose origin is before it, even if their records come later in the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import assert_never

from penstock.config.delay_route import Route
from penstock.record.record import Record
from penstock.retry.policy import Cancel, Dead, Recur, WaitUntil, judge
from penstock.retry.progress import Progress
from penstock.retry.store.index import DueKind, Entry, IndexKey
from penstock.types import TopicPartition, Uuid

AT_ONCE = 0


@dataclass(frozen=True, slots=True)
class _Chain:
    """The schedule of a key; its `entry` is None once a tombstone has ended it."""

    origin: int
    entry: Entry | None


class DelayPartition:
    """The state of one partition; pass its records to `read` in order."""

    def __init__(
        self, partition: TopicPartition, key: IndexKey, route: Route, progress: Progress
    ) -> None:
        self.partition, self.key, self.route, self.progress = partition, key, route, progress
        self.leader_epoch = -1
        """Epoch of the leader whose log is known to have what was read."""
        self.opened_to = -1
        """Offset of the last record that must be read before the first delivery: records already in
        the log may cancel what is due.
        """
        self.written_to = -1
        """Offset of the last record that the service itself appended. A tombstone before it may end
        its schedule, so schedules wait until it is read. A transaction of another producer that is
        open before it can delay that.
        """
        self.next_due_ms: int | None = None
        """No entry is due before this time; None: there is no entry."""
        self.held_until_ms = 0
        """No delivery before this monotonic time, because its target cannot be written."""
        self.batch = 0
        """How many entries the next transaction takes; 0: the maximum."""
        self._chains: dict[bytes, _Chain] = {}
        self._tombstones: dict[bytes, int] = {}
        """Tombstones of keys without a schedule: a record of the schedule may still lie ahead."""

    @property
    def stored(self) -> IndexKey:
        """The key of its entries in the index. It changes when the log loses records, so that
        entries from before do not count, in any store.
        """
        return stored_key(self.key, self.progress.history.rewinds)

    @property
    def is_opened(self) -> bool:
        """Whether everything that must be read before the first delivery was read."""
        return self.progress.read_to > self.opened_to

    @property
    def is_read(self) -> bool:
        """Whether everything that must be read before a schedule changes was read."""
        return self.progress.read_to > max(self.opened_to, self.written_to)

    def is_free(self, entry: Entry) -> bool:
        """Whether the entry may be delivered now."""
        if self.is_read or entry.kind in (DueKind.RECORD, DueKind.DEAD):
            return True
        return entry.kind is DueKind.CANCEL and not any(
            chain.entry is not None and chain.entry.offset == entry.origin
            for chain in self._chains.values()
        )

    def indexed(self, entries: Iterable[Entry]) -> None:
        """These entries are in the index now."""
        due = [each.due_ms for each in entries]
        if due:
            known = self.next_due_ms
            self.next_due_ms = min(due) if known is None else min(known, *due)

    def caught_up(self) -> None:
        """Forget tombstones once everything necessary is read: no records of the schedules that
        they ended lie ahead any more.
        """
        if self.is_read:
            self._tombstones.clear()
            self._chains = {
                key: chain for key, chain in self._chains.items() if chain.entry is not None
            }

    def resume(self, schedules: list[Entry]) -> None:
        """Continue with an index that has these schedules, and tombstones that ended some."""
        for each in sorted(schedules, key=lambda entry: entry.origin):
            entry = each if each.kind is DueKind.SCHEDULE else None
            self._chains[each.key] = _Chain(each.origin, entry)

    def read(self, record: Record, now_ms: int) -> list[Entry]:
        """The entries to add or replace because of this record."""
        verdict = judge(record, self.partition, self.route, now_ms)
        match verdict:
            case Recur():
                assert record.key is not None
                entry = Entry(
                    verdict.due_ms, record.offset, DueKind.SCHEDULE, record.key, verdict.origin
                )
                entries = self._read_schedule(entry)
            case Cancel(offset):
                entries = [Entry(AT_ONCE, record.offset, DueKind.CANCEL, origin=offset)]
            case Dead():
                entries = [Entry(AT_ONCE, record.offset, DueKind.DEAD)]
            case WaitUntil(due_ms):
                entries = self._read_tombstone(record) or [Entry(due_ms, record.offset)]
            case _:
                assert_never(verdict)
        return [each for each in entries if self._counts(each.offset, record.offset)]

    def _counts(self, offset: int, new: int) -> bool:
        if self.progress.is_done(offset):
            return False
        if offset == new:
            self.progress.waits(offset)
        return True

    def _read_schedule(self, entry: Entry) -> list[Entry]:
        chain = self._chains.get(entry.key)
        tombstone = self._tombstones.get(entry.key, -1)
        if chain is not None and entry.origin < chain.origin:
            return [_ended(entry.offset, DueKind.CANCELLED)]
        if entry.origin < tombstone:
            self._chains[entry.key] = _Chain(tombstone, None)
            return [_ended(entry.offset, DueKind.CANCELLED), _spent(tombstone, entry.key)]
        self._chains[entry.key] = _Chain(entry.origin, entry)
        replaced = [] if chain is None or chain.entry is None else [chain.entry]
        return [
            entry,
            *(each._replace(due_ms=AT_ONCE, kind=DueKind.CANCELLED) for each in replaced),
        ]

    def _read_tombstone(self, record: Record) -> list[Entry]:
        """Empty unless the record ends a schedule."""
        if record.value is not None or record.key is None:
            return []
        chain = self._chains.get(record.key)
        if chain is None or chain.entry is None:
            self._tombstones[record.key] = record.offset
            return []
        self._chains[record.key] = _Chain(record.offset, None)
        return [_ended(chain.entry.offset, DueKind.CANCELLED), _spent(record.offset, record.key)]


@lru_cache(maxsize=4096)
def stored_key(key: IndexKey, rewinds: int) -> IndexKey:
    """The key of a partition in the index after its log lost records `rewinds` times."""
    if rewinds == 0:
        return key
    made = sha256(key.topic_id + b"%d" % rewinds).digest()[: len(key.topic_id)]
    return IndexKey(Uuid(made), key.partition)


def _ended(offset: int, kind: DueKind) -> Entry:
    return Entry(AT_ONCE, offset, kind)


def _spent(tombstone: int, key: bytes) -> Entry:
    """Keeps the key: after a restart, the next record of the schedule may still lie ahead."""
    return Entry(AT_ONCE, tombstone, DueKind.SPENT, key, tombstone)
