"""Flushed records are read back in order after any crash, or the damage is reported and cut."""

import errno
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.config.topic import TopicConfig
from penstock.errors import KafkaError, StorageError
from penstock.log.log_dir import RECOVERY_POINTS
from penstock.log.old_segments import delete_old_segments
from penstock.log.time_search import offset_for_timestamp
from penstock.record.batch import HEADER_BYTES, CorruptBatch, batches
from penstock.testing.logs import PARTITION, LogRig, batch_of

CONFIG = TopicConfig(
    segment_bytes=700,
    index_interval_bytes=150,
    segment_index_bytes=600,
    retention_bytes=1_500,
    file_delete_delay_ms=10,
)
IDEMPOTENT, TRANSACTIONAL = 1, 2

# Kafka's CRC covers neither base offset nor leader epoch: a bit flipped there may go unnoticed.
UNCOVERED_BYTES = {*range(8), *range(12, 16)}

batch_sizes = st.integers(1, 4)
fractions = st.integers(0, 1_000)


@dataclass(frozen=True)
class Kept:
    """One batch as the model knows it."""

    base_offset: int
    values: tuple[bytes, ...]
    timestamp: int
    leader_epoch: int
    sequence: int | None = None
    """The last sequence of an idempotent batch."""
    aborted: bool = False
    is_marker: bool = False

    @property
    def end_offset(self) -> int:
        return self.base_offset + len(self.values)


class Reports(logging.Handler):
    """Collects the damage that the log reports."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class LogMachine(RuleBasedStateMachine):
    """A log on a disk that crashes, beside a list of its expected content."""

    def __init__(self) -> None:
        super().__init__()
        self.reports = Reports()
        logging.getLogger("penstock.log").addHandler(self.reports)

    def teardown(self) -> None:
        logging.getLogger("penstock.log").removeHandler(self.reports)

    @initialize()
    def begin(self) -> None:
        self.rig = LogRig(CONFIG)
        self.rig.flush()
        self.batches: list[Kept] = []
        self.flushed_end = 0
        self.epoch = 0
        self.clock = 0
        self.serial = 0

    def add(self, count: int, timestamp: int, **batch: int | bool) -> None:
        values = tuple(b"%d" % (self.serial + n) * 9 for n in range(count))
        self.serial += count
        sent = batch_of(*values, timestamp=timestamp, **batch)  # type: ignore[arg-type]  # flags
        sequence = None
        if batch.get("producer_id") == IDEMPOTENT:
            sequence = int(batch["sequence"]) + count - 1
        # Noted first: if the disk fails, the batch may have reached it nevertheless.
        offset = self.rig.log.end_offset
        self.batches.append(Kept(offset, values, timestamp, self.epoch, sequence))
        assert self.rig.append(sent, self.epoch, self.clock).first_offset == offset

    @rule(count=batch_sizes, timestamp=st.integers(0, 500))
    def append(self, count: int, timestamp: int) -> None:
        self.add(count, timestamp)

    @rule(count=batch_sizes)
    def append_idempotent(self, count: int) -> None:
        entry = self.rig.log.producers.producers.get(IDEMPOTENT)
        sequence = 0 if entry is None else entry.last_sequence + 1
        self.add(count, 0, producer_id=IDEMPOTENT, sequence=sequence)

    @rule(committed=st.booleans())
    def transaction(self, committed: bool) -> None:
        entry = self.rig.log.producers.producers.get(TRANSACTIONAL)
        sequence = 0 if entry is None else entry.last_sequence + 1
        self.add(1, 0, producer_id=TRANSACTIONAL, sequence=sequence, transactional=True)
        first = self.batches[-1]
        marker = self.rig.end_transaction(
            TRANSACTIONAL, committed=committed, leader_epoch=self.epoch
        )
        self.batches.append(
            Kept(marker.first_offset, (b"",), 0, self.epoch, None, not committed, is_marker=True)
        )
        assert marker.first_offset == first.end_offset

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule(interval_bytes=st.sampled_from([0, 150, 4096]))
    def alter_index_interval(self, interval_bytes: int) -> None:
        """Counts for segments that are loaded or begun from now on."""
        self.rig.config = replace(self.rig.config, index_interval_bytes=interval_bytes)
        self.restart()

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
    def retain(self) -> None:
        self.clock += 5
        delete_old_segments(self.rig.log, self.clock)
        self.rig.log.segments.remove_deleted(self.clock)

    @rule(where=fractions)
    def delete_records(self, where: int) -> None:
        """Delete up to some record, which may be in the middle of a batch."""
        log = self.rig.log
        self.replicate()
        offset = log.log_start_offset + (log.end_offset - log.log_start_offset) * where // 1_000
        log.maybe_increment_log_start(offset)
        self.checkpoint()

    @rule(where=fractions)
    def truncate(self, where: int) -> None:
        log = self.rig.log
        offset = log.log_start_offset + (log.end_offset - log.log_start_offset) * where // 1_000
        kept = [batch.end_offset for batch in self.batches if batch.end_offset <= offset]
        self.flushed_end = min(self.flushed_end, max(kept, default=0))
        self.rig.store.truncate({PARTITION: offset})
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
        self.epoch += 1

    @rule(gap=st.integers(0, 50))
    def begin_anew(self, gap: int) -> None:
        self.flushed_end = 0
        self.rig.store.truncate_fully(PARTITION, self.rig.log.end_offset + gap, self.clock)
        self.batches = []

    @rule()
    def release_files(self) -> None:
        for segment in self.rig.log.segments:
            segment.release()

    @rule()
    def restart(self) -> None:
        self.reports.texts.clear()
        self.rig.restart()
        assert self.reports.texts == []
        self.flushed_end = self.rig.log.end_offset

    @rule(data=st.data(), loses_recovery_points=st.booleans())
    def crash(self, data: st.DataObject, loses_recovery_points: bool = False) -> None:
        def damage() -> None:
            self.rig.files.remove(self.rig.dirs[0] / RECOVERY_POINTS)

        self.rig.crash(
            lambda kind, count: data.draw(st.integers(0, count), kind),
            damage if loses_recovery_points else None,
        )
        self.adopt_survivors()

    @rule(data=st.data(), step=st.integers(1, 25))
    def crash_within(self, data: st.DataObject, step: int) -> None:
        """The machine stops at some file operation in the middle of a step."""
        work = data.draw(st.sampled_from(["append", "roll", "flush", "truncate", "anew", "stop"]))
        self.rig.fake.fail_at(self.rig.fake.operations + step, errno.EIO)
        with suppress(StorageError):
            match work:
                case "append":
                    self.add(3, 7)
                case "roll":
                    self.roll()
                case "flush":
                    self.flush()
                case "truncate":
                    self.truncate(data.draw(fractions))
                case "anew":
                    self.begin_anew(3)
                case _:
                    self.rig.store.close()
        self.crash(data)

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), where=fractions, bit=st.integers(0, 7))
    def crash_and_flip_a_bit(self, data: st.DataObject, where: int, bit: int) -> None:
        self.reports.texts.clear()

        def damage() -> None:
            paths = [
                path
                for path in self.rig.fake.walk(self.rig.dirs[0] / "orders-0")
                if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
            ]
            if not paths:
                return  # the crash lost them all: nothing was synced since they were created
            path = data.draw(st.sampled_from(paths))
            at = self.rig.files.size(path) * where // 1_001
            if self.rig.files.size(path) and not (
                path.suffix == ".log" and self.is_uncovered(path, at)
            ):
                self.rig.fake.flip_bit(path, at * 8 + bit)

        self.rig.crash(damage=damage)
        try:
            found = dict(self.rig.read_all())
        except CorruptBatch:
            self.begin()  # reported to the reader; a replica would be restored from another
            return
        truth = self.truth()
        assert found.items() <= truth.items()
        missing = [
            at for at in truth if self.log_start <= at < self.flushed_end and at not in found
        ]
        assert not missing or self.reports.texts
        self.begin()

    @precondition(lambda self: self.batches)
    @rule(data=st.data(), where=fractions, bit=st.integers(0, 7))
    def stop_and_flip_a_bit(self, data: st.DataObject, where: int, bit: int) -> None:
        """After a clean stop hardly anything is checked: only readers notice the damage."""
        self.rig.store.close()
        places = self.places(where)
        kind = data.draw(st.sampled_from(sorted(places)))
        path, at = data.draw(st.sampled_from(places[kind]))
        self.rig.fake.flip_bit(path, at * 8 + bit)
        self.rig.store = self.rig._open_store()
        log = self.rig.log
        log.set_high_watermark(log.end_offset)
        works: list[Callable[[], object]] = [
            self.rig.read_all,
            lambda: offset_for_timestamp(log, 250),
            lambda: self.rig.store.truncate({PARTITION: log.end_offset - 1}),
            lambda: log.roll(self.clock),
            lambda: delete_old_segments(log, 1 << 60),
        ]
        for work in data.draw(st.permutations(works)):
            with suppress(KafkaError):
                work()
            self.offsets_are_in_order()
        self.rig.store.close()
        self.begin()

    def places(self, where: int) -> dict[str, list[tuple[Path, int]]]:
        """Bytes to damage: in any file, in the offset of a last batch, and in a marker."""
        found: dict[str, list[tuple[Path, int]]] = {}
        for path in self.rig.fake.walk(self.rig.log.path):
            data = self.rig.files.read(path)
            if data:
                found.setdefault("any", []).append((path, len(data) * where // 1_001))
            if path.suffix == ".log" and data:
                read = list(batches(data))
                found.setdefault("offset", []).append((path, read[-1][0] + where % 8))
                for at in [at for at, header in read if header.is_control][-1:]:
                    place = path, at + HEADER_BYTES + where % 17
                    found.setdefault("marker", []).append(place)
        return found

    def is_uncovered(self, path: object, at: int) -> bool:
        data = self.rig.files.read(path)  # type: ignore[arg-type]  # a path, from `walk`
        position = 0
        while position + 12 <= len(data):
            size = 12 + int.from_bytes(data[position + 8 : position + 12])
            if position <= at < position + size:
                return at - position in UNCOVERED_BYTES
            position += max(size, 61)
        return True

    @property
    def log_start(self) -> int:
        return self.rig.log.log_start_offset

    def truth(self) -> dict[int, bytes]:
        return {
            batch.base_offset + n: value
            for batch in self.batches
            if not batch.is_marker
            for n, value in enumerate(batch.values)
        }

    def adopt_survivors(self) -> None:
        end = self.rig.log.end_offset
        assert all(
            batch.end_offset <= end
            for batch in self.batches
            if batch.end_offset <= self.flushed_end
        )
        # The lost end of a segment before one that survived leaves a gap, as compaction does.
        headers = [
            header
            for segment in self.rig.log.segments
            for _, header in segment.headers_from(segment.base_offset)
        ]
        found = {header.base_offset for header in headers}
        if headers:
            assert end == headers[-1].next_offset, "an empty segment behind a gap"
        self.batches = [
            batch
            for batch in self.batches
            if batch.end_offset <= self.flushed_end or batch.base_offset in found
        ]
        self.flushed_end = min(self.flushed_end, end)
        self.epoch += 1

    def present(self) -> list[Kept]:
        return [batch for batch in self.batches if batch.end_offset > self.log_start]

    @invariant()
    def records_match(self) -> None:
        expected = [(at, value) for at, value in self.truth().items() if at >= self.log_start]
        assert self.rig.read_all() == expected

    @invariant()
    def epochs_match(self) -> None:
        for batch in self.present():
            offset = max(batch.base_offset, self.log_start)
            assert self.rig.log.epochs.epoch_for(offset) == batch.leader_epoch

    @invariant()
    def producers_match(self) -> None:
        sequences = [batch.sequence for batch in self.present() if batch.sequence is not None]
        entry = self.rig.log.producers.producers.get(IDEMPOTENT)
        if sequences:
            assert entry is not None
            assert entry.last_sequence == sequences[-1]

    @invariant()
    def aborted_transactions_match(self) -> None:
        """Transactions with a record left to skip: recovery ignores those before the log start."""
        log = self.rig.log
        found = log.aborted_between(self.log_start, max(log.end_offset, self.log_start + 1))
        known = {batch.base_offset for batch in self.batches}
        expected = [
            batch.base_offset
            for batch in self.batches
            if batch.aborted
            and batch.base_offset - 1 >= self.log_start
            and batch.base_offset - 1 in known
        ]
        assert [
            txn.last_offset for txn in found if txn.last_offset - 1 >= self.log_start
        ] == expected

    @invariant()
    def timestamps_match(self) -> None:
        data = [replace(batch) for batch in self.present() if not batch.is_marker]
        for asked in (0, 250, 500):
            expected = next(
                (
                    (batch.timestamp, max(batch.base_offset, self.log_start))
                    for batch in data
                    if batch.timestamp >= asked
                ),
                None,
            )
            if asked:
                assert offset_for_timestamp(self.rig.log, asked) == expected

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.rig.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
        assert log.high_watermark <= log.end_offset
        assert log.recovery_point <= log.end_offset


LogMachine.TestCase.settings = settings(
    max_examples=8 * settings().max_examples, stateful_step_count=40, deadline=None
)
TestLogMachine = LogMachine.TestCase
