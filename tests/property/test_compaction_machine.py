"""A compacted log on disks that crash always has the newest value of each key.

It moves between two directories, loses its first records and its topic, and changes its policy.
"""

import errno
import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.clock import SystemClock
from penstock.config.storage import StorageConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.job import CleanedGroup, Finished
from penstock.log.compaction.offset_map import BYTES_PER_KEY
from penstock.log.compaction.swap import swap_in
from penstock.log.corrupt import CorruptFile
from penstock.log.flush import Flusher
from penstock.log.log_dir import RECOVERY_POINTS
from penstock.record.batch import CorruptBatch, batches, crc_matches
from penstock.record.build import build_batch
from penstock.record.record import Record, records
from penstock.replication.log_dir_moves import LogDirMoves, _copy_some
from penstock.replication.partitions import Partitions
from penstock.testing.files import Choice
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig
from penstock.types import BrokerId, Uuid

CONFIG = TopicConfig(
    cleanup_policy=("compact",),
    segment_bytes=300,
    index_interval_bytes=150,
    segment_index_bytes=600,
    delete_retention_ms=20,
    file_delete_delay_ms=10,
)
KEYS = [b"a", b"b", b"c"]
PRODUCER = 1
DAMAGED = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".cleaned", ".swap"}

# Kafka's CRC covers neither base offset nor leader epoch: a bit flipped there may go unnoticed.
UNCOVERED_BYTES = {*range(8), *range(12, 16)}

pairs = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=4)
"""Keys, and whether each record is a tombstone."""
fractions = st.integers(0, 1_000)
steps = st.integers(1, 150)


@dataclass(frozen=True)
class Kept:
    """One record of data as the model knows it."""

    key: bytes | None
    value: bytes | None
    aborted: bool = False


class Reports(logging.Handler):
    """Collects the damage that the log reports."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def is_grown(machine: "CompactionMachine") -> bool:
    """Whether there is enough to lose: rules that drop everything must not run too early."""
    return machine.serial > 40


class CompactionMachine(RuleBasedStateMachine):
    """A log under compaction beside a model of everything written to it and not truncated."""

    def __init__(self) -> None:
        super().__init__()
        self.reports = Reports()
        logging.getLogger("penstock.log").addHandler(self.reports)

    def teardown(self) -> None:
        logging.getLogger("penstock.log").removeHandler(self.reports)

    @initialize()
    def begin(self) -> None:
        self.rig = LogRig(CONFIG, dirs=("d0", "d1"))
        self.rig.flush()
        self.topics, self.topic_id = 0, TOPIC_ID
        self.started()
        self.written: dict[int, Kept] = {}
        self.flushed_end = 0
        self.start = 0
        """Records before this offset were deleted; a log's start does not move by itself."""
        self.cleaned_end = 0
        """Records before this offset may have been removed in favour of newer ones, also before it.
        """
        self.clock = 0
        self.serial = 0

    def started(self) -> None:
        self.compactor = compactor = Compactor(self.rig.files, list, SystemClock(), StorageConfig)
        self.rig.store.before_create = lambda log_dir, it: compactor.forget(log_dir, [it])

    def add(self, made: list[tuple[bytes, bool]], *, aborted: bool = False, **batch: int) -> None:
        first = self.rig.log.end_offset
        sent: list[Record] = []
        for key, is_tombstone in made:
            value = None if is_tombstone else b"%d" % self.serial * 9
            self.serial += 1
            # Noted first: if the disk fails, the batch may have reached it nevertheless.
            self.written[first + len(sent)] = Kept(key, value, aborted)
            sent.append(Record(len(sent), self.clock, key, value, []))
        transactional = "producer_id" in batch
        made_batch = build_batch(sent, transactional=transactional, **batch)  # type: ignore[arg-type]  # numbers only
        assert self.rig.append(made_batch, 0, self.clock).first_offset == first

    @rule(several=st.lists(pairs, min_size=1, max_size=5))
    def append(self, several: list[list[tuple[bytes, bool]]]) -> None:
        for made in several:
            self.add(made)

    @rule(made=pairs, committed=st.booleans())
    def transaction(self, made: list[tuple[bytes, bool]], committed: bool) -> None:
        entry = self.rig.log.producers.producers.get(PRODUCER)
        sequence = 0 if entry is None or not entry.batches else entry.last_sequence + 1
        self.add(
            made,
            aborted=not committed,
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=sequence,
        )
        self.rig.end_transaction(PRODUCER, committed=committed)

    @rule()
    def roll(self) -> None:
        self.rig.log.roll(self.clock)

    @rule()
    def flush(self) -> None:
        self.rig.log.flush()
        self.flushed_end = self.rig.log.end_offset

    @rule()
    def checkpoint(self) -> None:
        for log_dir in self.rig.store.dirs:
            self.rig.store.checkpoint(log_dir)

    @rule()
    def replicate(self) -> None:
        self.rig.log.advance_high_watermark(self.rig.log.end_offset)

    @rule()
    def wait(self) -> None:
        self.clock += 10
        self.rig.log.segments.remove_deleted(self.clock)

    @rule(keys=st.integers(1, 5))
    def compact(self, keys: int, stop_at: int | None = None) -> None:
        """Compact as the broker does, but in this process; the disk may fail within a swap."""
        log = self.rig.log
        job = self.compactor.job_for(log, self.clock)
        if "compact" not in log.config.cleanup_policy or job.first_dirty >= job.first_uncleanable:
            return
        self.cleaned_end = max(self.cleaned_end, job.first_uncleanable)
        job = msgspec.structs.replace(
            job, dedupe_buffer_bytes=keys * BYTES_PER_KEY, io_buffer_bytes=200
        )
        for answer in clean(self.rig.files, job):
            match answer:
                case CleanedGroup():
                    if stop_at is not None:
                        self.rig.fake.fail_at(self.rig.fake.operations + stop_at, errno.EIO)
                    assert swap_in(self.rig.files, log, answer, self.clock)
                case Finished(cleaned_to):
                    self.compactor.note_cleaned(log, cleaned_to)()

    @rule(keys=st.integers(3, 5))
    def settle_and_compact(self, keys: int) -> None:
        """The usual steps before there is something to clean, so that this happens often."""
        self.roll()
        self.flush()
        self.replicate()
        self.compact(keys)

    @precondition(lambda self: len(self.written) > 5)
    @rule(data=st.data(), flushes=st.booleans(), policy=st.sampled_from(["compact", "delete"]))
    def compact_and_crash(self, data: st.DataObject, flushes: bool, policy: str) -> None:
        """The policy may have changed when the broker starts again."""
        self.alter_policy("compact")
        self.roll()
        if flushes:
            self.flush()
        self.replicate()
        self.compact(5)
        self.alter_policy(policy)
        self.crash(data, data.draw(st.booleans()))

    @rule(where=fractions)
    def truncate(self, where: int) -> None:
        log = self.rig.log
        offset = log.log_start_offset + (log.end_offset - log.log_start_offset) * where // 1_000
        if offset < log.end_offset:
            # A batch is removed entirely, so more may be lost than was asked for.
            self.flushed_end = min(self.flushed_end, max(offset - 4, 0))
        self.compactor.truncated(log, offset)
        self.rig.store.truncate({PARTITION: offset})
        self.cut()

    @rule(where=fractions)
    def delete_records(self, where: int) -> None:
        """Delete up to some record, which may be in the middle of a batch."""
        log = self.rig.log
        self.replicate()
        offset = log.log_start_offset + (log.end_offset - log.log_start_offset) * where // 1_000
        self.start = offset
        log.maybe_increment_log_start(offset)
        self.checkpoint()
        self.written = {at: row for at, row in self.written.items() if at >= offset}

    @rule(policy=st.sampled_from(["compact", "delete"]))
    def alter_policy(self, policy: str) -> None:
        """Without limits, so that nothing is past retention."""
        self.rig.config = replace(
            CONFIG, cleanup_policy=(policy,), retention_ms=-1, retention_bytes=-1
        )
        self.rig.log.config = self.rig.config

    @rule(policy=st.sampled_from([None, "compact", "delete"]))
    def move(self, policy: str | None) -> None:
        """Move to the other directory, as the broker does; a setting may be altered meanwhile."""
        store, before = self.rig.store, self.rig.log
        there = next(path for path in self.rig.dirs if path != before.log_dir.path)
        partitions = Partitions(BrokerId(0), store)
        partition = partitions.create(*PARTITION, self.topic_id, self.clock, is_new=False)
        moves = LogDirMoves(
            partitions,
            Flusher(lambda _: None, threads=1),
            SystemClock(),
            lambda log: self.compactor.truncated(log, 0),
        )
        moves.start(PARTITION, there)
        future = store.future_logs[PARTITION]
        if policy is not None:
            self.alter_policy(policy)
        while _copy_some(before, future, self.clock):
            pass
        future.flush()
        moves._take_over(partition, future)
        self.flushed_end = self.rig.log.end_offset

    @rule(where=fractions)
    def move_after_deleting_records(self, where: int) -> None:
        """Makes it frequent that a copy begins in the middle of a batch."""
        self.delete_records(where)
        self.move(None)

    @precondition(lambda self: self.written)
    @rule(data=st.data(), where=fractions, several=st.lists(pairs, min_size=1, max_size=5))
    def recreate_the_topic(
        self, data: st.DataObject, where: int, several: list[list[tuple[bytes, bool]]]
    ) -> None:
        """Checkpoints of the old log are not applied to the new one."""
        self.delete_records(where)
        self.make_anew(several, data)
        if data.draw(st.booleans()):
            self.crash(data)

    @rule(keys=st.permutations(KEYS), cleaned=st.integers(1, 4), several=st.lists(pairs))
    def recreate_a_topic_that_was_cleaned(
        self, keys: list[bytes], cleaned: int, several: list[list[tuple[bytes, bool]]]
    ) -> None:
        """The new log is dirty from its first record on; otherwise its deleted values would come
        back.
        """
        gone, kept, other = keys
        self.alter_policy("compact")
        self.make_anew([[(other, False)] * cleaned])
        self.settle_and_compact(5)
        self.topics += self.topics % 2  # the next one is in the same directory
        self.make_anew([[(gone, False)], [(gone, True)], [(kept, False)], *several])
        for _ in range(3):
            self.settle_and_compact(5)
            for _ in range(3):
                self.wait()
            self.append([[(other, False)]])

    def make_anew(
        self, several: list[list[tuple[bytes, bool]]], data: st.DataObject | None = None
    ) -> None:
        """With `data` the machine may lose power between deletion and creation."""
        if PARTITION in self.rig.store.future_logs:
            self.rig.store.delete(PARTITION, future=True)
        self.rig.store.delete(PARTITION)
        if data is not None and data.draw(st.booleans()):
            self.rig.crash(in_order(data))
            self.started()
        self.topics += 1
        self.topic_id = Uuid(self.topics.to_bytes(16))
        self.written, self.flushed_end, self.cleaned_end, self.start = {}, 0, 0, 0
        path = self.rig.dirs[self.topics % 4 // 2]
        self.rig.store.create(PARTITION, self.topic_id, self.clock, path=path)
        self.append(several)
        self.flush()

    @precondition(is_grown)
    @rule(gap=st.integers(0, 50))
    def begin_anew(self, gap: int) -> None:
        self.flushed_end = 0
        self.compactor.truncated(self.rig.log, 0)
        self.start = self.rig.log.end_offset + gap
        self.rig.store.truncate_fully(PARTITION, self.start, self.clock)
        self.written = {}
        self.cut()

    @rule()
    def restart(self) -> None:
        self.reports.texts.clear()
        self.rig.restart()
        self.started()
        # A copy whose id was torn by a crash is recognised by its name.
        reported = [text for text in self.reports.texts if "partition.metadata" not in text]
        assert reported == []
        self.flushed_end = self.rig.log.end_offset

    @rule(data=st.data(), loses_recovery_points=st.booleans())
    def crash(self, data: st.DataObject, loses_recovery_points: bool = False) -> None:
        def damage() -> None:
            for path in self.rig.dirs:
                self.rig.files.remove(path / RECOVERY_POINTS)
                self.rig.files.sync_dir(path)

        self.rig.crash(in_order(data), damage if loses_recovery_points else None)
        if PARTITION not in self.rig.store.topic_ids:
            self.rig.store.name_topic(self.rig.log, self.topic_id)  # as the broker does
        self.started()
        assert self.rig.log.end_offset >= self.flushed_end
        # A lost end before a segment that survived is a gap like those of compaction.
        found, promised = self.read(), self.flushed_end
        self.written = {
            at: row
            for at, row in self.written.items()
            if at < promised or at in found or self.is_cleaned_tombstone(at, row, found)
        }
        self.cut()

    def is_cleaned_tombstone(self, at: int, row: Kept, found: dict[int, Kept]) -> bool:
        """The tombstone was removed with what it deleted; it was not lost."""
        is_older = (before < at and each.key == row.key for before, each in found.items())
        return at < self.cleaned_end and row.value is None and not any(is_older)

    @rule(data=st.data(), step=steps)
    def crash_within(self, data: st.DataObject, step: int) -> None:
        """The machine stops at some file operation in the middle of a step."""
        work = data.draw(
            st.sampled_from(
                ["swap", "swap", "compact", "flush", "truncate", "anew", "move", "move", "stop"]
            )
        )
        if work in {"compact", "swap"}:
            self.roll()
            if data.draw(st.booleans()):
                self.flush()
            self.replicate()
        self.stop_within(work, step, data)
        self.crash(data)

    def stop_within(self, work: str, step: int, data: st.DataObject) -> None:
        if work != "swap":
            self.rig.fake.fail_at(self.rig.fake.operations + step, errno.EIO)
        with suppress(StorageError):
            match work:
                case "swap":
                    self.compact(5, stop_at=step % 25 + 1)
                case "compact":
                    self.compact(5)
                case "flush":
                    self.flush()
                case "truncate":
                    self.truncate(data.draw(fractions))
                case "anew":
                    self.begin_anew(3)
                case "move":
                    self.move(None)
                case _:
                    self.rig.store.close()

    @rule(number=fractions, bit=st.integers(0, 63))
    def compact_around_a_damaged_offset(self, number: int, bit: int) -> None:
        """No CRC covers the offset. The newest value of a key must not be taken for an old one."""
        self.alter_policy("compact")
        self.roll()
        self.flush()
        self.replicate()
        filled = [
            (each.path(), range(each.base_offset, following.base_offset))
            for each, following in pairwise(self.rig.log.segments)
            if each.size_bytes and each.newest
        ]
        if filled:
            path, offsets = filled[number % len(filled)]
            if self.moves_within_a_gap(path, offsets, bit):
                return  # cannot be detected
            self.rig.fake.flip_bit(path, bit)
            with suppress(CorruptFile):
                self.compact(5)
            assert self.rig.files.exists(path), "a segment with a damaged offset was cleaned"
            self.rig.fake.flip_bit(path, bit)

    def moves_within_a_gap(self, path: Path, offsets: range, bit: int) -> bool:
        """Whether the first batch, with the changed base offset, is still before all later ones."""
        headers = [header for _, header in batches(self.rig.files.read(path))]
        base, last = headers[0].base_offset, headers[0].last_offset
        moved = base ^ 1 << (8 * (7 - bit // 8) + bit % 8)
        end = headers[1].base_offset if len(headers) > 1 else offsets.stop
        return offsets.start <= moved and moved + last - base < end

    @precondition(is_grown)
    @rule(data=st.data(), step=steps, where=fractions, bit=st.integers(0, 7))
    def flip_a_bit_within_a_compaction(
        self, data: st.DataObject, step: int, where: int, bit: int
    ) -> None:
        folder_before = self.rig.log.path
        self.stop_within("swap", step, data)
        self.reports.texts.clear()

        def damage() -> None:
            folder = folder_before
            paths = [path for path in self.rig.fake.walk(folder) if path.suffix in DAMAGED]
            path = data.draw(st.sampled_from(paths))
            size = self.rig.files.size(path)
            at = size * where // 1_001
            if size and not (".log" in path.name and self.is_uncovered(path, at)):
                self.rig.fake.flip_bit(path, at * 8 + bit)

        self.rig.crash(lambda _kind, count: count, damage)
        if self.rig.offline:
            self.begin()  # nothing records which segments a damaged swap file was to replace
            return
        try:
            found = self.read()
        except CorruptBatch:
            self.begin()  # reported to the reader; a replica would be restored from another
            return
        # Aborted records are not compared: a plausible wrong index entry cannot be detected.
        for at, record in found.items():
            written = self.written[at]
            assert (record.key, record.value) == (written.key, written.value)
        # After a truncation more may have been flushed, and cleaned, than `flushed_end` says.
        flushed_end = max(self.flushed_end, self.cleaned_end)
        lost = [
            at
            for at, record in newest(self.written, flushed_end).items()
            if at not in found and record.value is not None
        ]
        assert not lost or self.reports.texts
        self.begin()

    def is_uncovered(self, path: Path, at: int) -> bool:
        data = self.rig.files.read(path)
        position = 0
        while position + 12 <= len(data):
            size = 12 + int.from_bytes(data[position + 8 : position + 12])
            if position <= at < position + size:
                return at - position in UNCOVERED_BYTES
            position += max(size, 61)
        return True

    def cut(self) -> None:
        """Forget records that are no longer in the log's range."""
        start, end = self.rig.log.log_start_offset, self.rig.log.end_offset
        self.written = {at: row for at, row in self.written.items() if start <= at < end}
        self.flushed_end = min(self.flushed_end, end)
        self.end_open_transaction()
        if end < self.cleaned_end:
            # The replacing record was truncated itself: only the remaining records are known.
            found = self.read()
            assert found.items() <= self.written.items()
            self.written, self.cleaned_end = found, end

    def end_open_transaction(self) -> None:
        """A transaction that lost its marker is aborted by its coordinator."""
        entry = self.rig.log.producers.producers.get(PRODUCER)
        if entry is None or entry.current_txn_first_offset is None:
            return
        for at, record in self.written.items():
            if at >= entry.current_txn_first_offset:
                self.written[at] = replace(record, aborted=True)
        self.rig.end_transaction(PRODUCER, committed=False)

    def read(self) -> dict[int, Kept]:
        """All data records, checked as by a consumer; aborted ones are marked."""
        log = self.rig.log
        found = {}
        offset = log.log_start_offset
        aborted = log.aborted_between(offset, max(log.end_offset, offset + 1))
        while (part := log.read(offset, 1, up_to=log.end_offset)) is not None:
            data = part.read()
            for at, header in batches(data):
                if not crc_matches(data, header, at):
                    raise CorruptBatch(f"offset {header.base_offset} does not match its CRC")
                offset = header.next_offset
                dropped = any(
                    txn.producer_id == header.producer_id
                    and txn.first_offset <= header.base_offset < txn.last_offset
                    for txn in aborted
                )
                if not header.is_control:
                    for record in records(data[at : at + header.size_bytes], header, 1 << 20):
                        if record.offset >= log.log_start_offset:
                            found[record.offset] = Kept(record.key, record.value, dropped)
        return found

    @invariant()
    def the_start_is_where_it_was_put(self) -> None:
        assert self.rig.log.log_start_offset <= self.start

    @invariant()
    def settings_hold(self) -> None:
        assert self.rig.log.config == self.rig.config

    @invariant()
    def nothing_is_new_and_nothing_has_moved(self) -> None:
        assert self.read().items() <= self.written.items()

    @invariant()
    def the_newest_values_are_there(self) -> None:
        found, end = self.read(), self.rig.log.end_offset
        assert live(found, end) == live(self.written, end)

    @invariant()
    def what_was_not_cleaned_is_whole(self) -> None:
        def past(rows: dict[int, Kept]) -> list[tuple[int, Kept]]:
            return [(at, record) for at, record in rows.items() if at >= self.cleaned_end]

        assert past(self.read()) == past(self.written)


def in_order(data: st.DataObject) -> Choice:
    """Older files reach the disk before newer ones; the last one to be written may be torn.

    In any other order the end of a closed segment could be lost and the next one kept. Where
    compaction leaves gaps, such a loss cannot be distinguished from them.
    """
    torn = False

    def choose(kind: str, count: int) -> int:
        nonlocal torn
        if kind == "bytes" and torn:
            return 0
        kept = data.draw(st.integers(0, count), kind)
        torn |= kind == "bytes" and kept < count
        return kept

    return choose


def newest(rows: dict[int, Kept], end: int) -> dict[int, Kept]:
    """The last committed record before `end` for each key."""
    last = {record.key: at for at, record in rows.items() if at < end and not record.aborted}
    return {at: rows[at] for at in last.values()}


def live(rows: dict[int, Kept], end: int) -> dict[int, Kept]:
    """A tombstone counts like a missing record."""
    return {at: record for at, record in newest(rows, end).items() if record.value is not None}


CompactionMachine.TestCase.settings = settings(
    max_examples=4 * settings().max_examples, stateful_step_count=30, deadline=None
)
TestCompactionMachine = CompactionMachine.TestCase
