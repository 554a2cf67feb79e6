"""The cleaner over files in memory: the segments that it writes beside a log's own."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.job import (
    CleanedGroup,
    CleaningJob,
    Finished,
    LastOfProducer,
    SegmentSize,
)
from penstock.log.compaction.offset_map import BYTES_PER_KEY
from penstock.log.corrupt import CorruptFile
from penstock.log.offset_index import OffsetIndex
from penstock.log.segment_files import CLEANED, INDEX, LOG, TIME_INDEX, TXN_INDEX, offset_path
from penstock.log.time_index import TimeIndex, TimestampOffset
from penstock.log.txn_index import AbortedTxn, decode_aborted, encode_aborted
from penstock.record.batch import BatchHeader, batches, crc_matches
from penstock.record.build import build_batch
from penstock.record.control import build_marker
from penstock.record.record import Record, records
from penstock.testing.files import FakeFiles

DIRECTORY = Path("/data/t-0")
NOW, RETENTION = 1_000_000, 1000
PRODUCER = 7


class Written:
    """A log written by a test: `segment` begins a file, `put` appends a batch to it."""

    def __init__(self) -> None:
        self.files = FakeFiles()
        self.files.make_dir(DIRECTORY)
        self.next_offset = 0
        self.segments: list[int] = []

    def segment(self) -> "Written":
        self.segments.append(self.next_offset)
        self.files.open(self.path(LOG), create=True)
        return self

    def path(self, suffix: str) -> Path:
        return offset_path(DIRECTORY, self.segments[-1], suffix)

    def put(self, *pairs: tuple[str, str | None], transactional: bool = False) -> "Written":
        made = [
            Record(
                self.next_offset + n,
                self.next_offset + n,
                key.encode(),
                None if value is None else value.encode(),
                [],
            )
            for n, (key, value) in enumerate(pairs)
        ]
        return self._append(
            build_batch(
                made,
                base_offset=self.next_offset,
                transactional=transactional,
                producer_id=PRODUCER if transactional else -1,
                producer_epoch=0 if transactional else -1,
                base_sequence=self.next_offset if transactional else -1,
            ),
            len(made),
        )

    def end(self, *, committed: bool, first_offset: int) -> "Written":
        if not committed:
            aborted = AbortedTxn(PRODUCER, first_offset, self.next_offset, self.next_offset + 1)
            self.files.open(self.path(TXN_INDEX), create=True).append(encode_aborted(aborted))
        marker = build_marker(
            producer_id=PRODUCER,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
            timestamp=self.next_offset,
            base_offset=self.next_offset,
        )
        return self._append(marker, 1)

    def _append(self, batch: bytearray, count: int) -> "Written":
        self.files.open(self.path(LOG)).append(batch)
        self.next_offset += count
        return self

    def job(
        self,
        *,
        first_dirty: int = 0,
        producers: Iterable[LastOfProducer] = (),
        now_ms: int = NOW,
        segment_bytes: int = 1 << 20,
        keys: int = 1000,
        io_buffer_bytes: int = 100,
    ) -> CleaningJob:
        """A job that cleans everything; the active segment would begin at the next offset."""
        return CleaningJob(
            directory=str(DIRECTORY),
            segments=[
                SegmentSize(base, self.files.size(offset_path(DIRECTORY, base, LOG)))
                for base in self.segments
            ],
            first_dirty=first_dirty,
            first_uncleanable=self.next_offset,
            producers=list(producers),
            now_ms=now_ms,
            delete_retention_ms=RETENTION,
            segment_bytes=segment_bytes,
            segment_index_bytes=1 << 20,
            index_interval_bytes=100,
            dedupe_buffer_bytes=keys * BYTES_PER_KEY,
            io_buffer_bytes=io_buffer_bytes,
        )

    def headers(self, base: int, suffix: str = LOG + CLEANED) -> list[BatchHeader]:
        data = self.files.read(offset_path(DIRECTORY, base, suffix))
        return [header for _, header in batches(data)]

    def contents(self, base: int, suffix: str = LOG + CLEANED) -> list[tuple[int, str, str | None]]:
        data = self.files.read(offset_path(DIRECTORY, base, suffix))
        found = []
        for at, header in batches(data):
            batch = data[at : at + header.size_bytes]
            assert crc_matches(batch, header)
            found += [
                (r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode())
                for r in records(batch, header, 1 << 20)
                if not header.is_control
            ]
        return found

    def swap(self, answers: Sequence[CleanedGroup | Finished]) -> None:
        """Put the cleaned files in place without regard to crashes."""
        for group in answers:
            if isinstance(group, CleanedGroup):
                for each in group.replaces:
                    self.segments.remove(each.base_offset)
                    for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
                        self.files.remove(offset_path(DIRECTORY, each.base_offset, suffix))
                self.segments.append(group.base_offset)
                for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX):
                    cleaned = offset_path(DIRECTORY, group.base_offset, suffix + CLEANED)
                    if self.files.exists(cleaned):
                        self.files.rename(cleaned, cleaned.with_suffix(""))
        self.segments.sort()


@pytest.fixture
def log() -> Written:
    return Written().segment()


@pytest.mark.row("A102")
def test_the_newest_value_of_each_key_stays_at_its_offset(log: Written) -> None:
    log.put(("a", "1"), ("b", "1")).put(("a", "2"), ("c", "1")).segment().put(("b", "2"))
    answers = list(clean(log.files, log.job()))
    end = answers[-1]
    assert isinstance(end, Finished)
    assert end.cleaned_to == 5
    assert log.contents(0) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]


def test_small_segments_become_one(log: Written) -> None:
    log.put(("a", "1")).segment().put(("b", "1")).segment().put(("c", "1"))
    one, end = clean(log.files, log.job())
    assert isinstance(one, CleanedGroup)
    assert [each.base_offset for each in one.replaces] == [0, 1, 2]
    assert isinstance(end, Finished)


def test_groups_do_not_pass_the_segment_size(log: Written) -> None:
    log.put(("a", "1")).segment().put(("b", "1")).segment().put(("c", "1"))
    size = log.job().segments[0].size_bytes
    groups = [
        [each.base_offset for each in group.replaces]
        for group in clean(log.files, log.job(segment_bytes=2 * size))
        if isinstance(group, CleanedGroup)
    ]
    assert groups == [[0, 1], [2]]


def test_the_dirty_part_replaces_records_of_the_clean_part(log: Written) -> None:
    log.put(("a", "clean"), ("b", "clean")).segment().put(("a", "dirty"))
    list(clean(log.files, log.job(first_dirty=2)))
    assert log.contents(0) == [(1, "b", "clean"), (2, "a", "dirty")]


def test_a_full_map_cleans_up_to_the_last_key_it_holds(log: Written) -> None:
    log.put(("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("a", "3"))
    *_, end = clean(log.files, log.job(keys=2))
    assert isinstance(end, Finished)
    assert end.cleaned_to == 3
    assert log.contents(0) == [(1, "b", "1"), (2, "a", "2"), (3, "c", "1"), (4, "a", "3")]


def test_several_rounds_with_little_memory_end_like_one_with_much(log: Written) -> None:
    for number in range(12):
        log.put((f"k{number % 5}", str(number)), (f"k{number % 3}", str(number)))
    first_dirty = 0
    while first_dirty < log.next_offset:
        answers = list(clean(log.files, log.job(first_dirty=first_dirty, keys=2)))
        end = answers[-1]
        assert isinstance(end, Finished)
        assert end.cleaned_to > first_dirty
        first_dirty = end.cleaned_to
        log.swap(answers)
    newest = {key: value for _, key, value in log.contents(0, LOG)}
    assert newest == {"k0": "10", "k1": "11", "k2": "11", "k3": "8", "k4": "9"}
    assert len(log.contents(0, LOG)) == len(newest)


def test_a_round_that_removes_the_last_batch_keeps_its_offset(log: Written) -> None:
    log.put(("a", "1")).put(("a", None))
    log.swap(list(clean(log.files, log.job())))
    answers = list(clean(log.files, log.job(now_ms=NOW + RETENTION)))
    assert log.contents(0) == []
    assert [header.next_offset for header in log.headers(0)] == [2]
    assert isinstance(answers[0], CleanedGroup)


def test_aborted_records_are_removed_and_replace_nothing(log: Written) -> None:
    log.put(("a", "kept"))
    log.put(("a", "aborted"), transactional=True).end(committed=False, first_offset=1)
    log.put(("b", "1"))
    list(clean(log.files, log.job()))
    assert log.contents(0) == [(0, "a", "kept"), (3, "b", "1")]


def test_committed_records_replace_older_ones(log: Written) -> None:
    log.put(("a", "old"))
    log.put(("a", "new"), transactional=True).end(committed=True, first_offset=1)
    list(clean(log.files, log.job()))
    assert log.contents(0) == [(1, "a", "new")]


def test_an_aborted_transaction_that_ends_in_the_active_segment_is_recognised(log: Written) -> None:
    log.put(("a", "kept")).put(("a", "aborted"), transactional=True)
    job = log.job()
    log.segment().end(committed=False, first_offset=1)
    list(clean(log.files, job))
    assert log.contents(0) == [(0, "a", "kept")]


def test_a_transaction_aborted_before_the_dirty_part_does_not_affect_the_next(log: Written) -> None:
    log.put(("a", "1"), transactional=True).end(committed=False, first_offset=0)
    log.put(("b", "old"), transactional=True).end(committed=True, first_offset=2)
    log.put(("b", "new"), transactional=True).end(committed=True, first_offset=4)
    list(clean(log.files, log.job(first_dirty=2)))
    assert log.contents(0) == [(4, "b", "new")]


def test_a_marker_stays_until_its_records_are_gone_and_its_horizon_has_passed(
    log: Written,
) -> None:
    log.put(("a", "1"), transactional=True).end(committed=True, first_offset=0)
    log.put(("a", "2")).put(("z", "1"))

    def markers() -> list[int | None]:
        return [h.delete_horizon_ms for h in log.headers(0, LOG) if h.is_control]

    # Its record existed at the beginning of this round, which removes it.
    log.swap(list(clean(log.files, log.job())))
    assert markers() == [None]
    log.swap(list(clean(log.files, log.job())))
    assert markers() == [NOW + RETENTION]
    log.swap(list(clean(log.files, log.job(now_ms=NOW + RETENTION - 1))))
    assert markers() == [NOW + RETENTION]
    log.swap(list(clean(log.files, log.job(now_ms=NOW + RETENTION))))
    assert markers() == []
    assert log.contents(0, LOG) == [(2, "a", "2"), (3, "z", "1")]


def test_the_last_batch_of_a_producer_is_kept_empty(log: Written) -> None:
    log.put(("a", "1"), transactional=True).end(committed=True, first_offset=0).put(("a", "2"))
    last = LastOfProducer(PRODUCER, 0, last_data_offset=0)
    list(clean(log.files, log.job(producers=[last])))
    first = log.headers(0)[0]
    assert (first.producer_id, first.base_sequence, first.record_count) == (PRODUCER, 0, 0)
    assert log.contents(0) == [(2, "a", "2")]


def test_the_index_of_aborted_transactions_lists_those_with_a_remaining_batch(
    log: Written,
) -> None:
    log.put(("a", "1"), transactional=True).end(committed=False, first_offset=0)
    log.put(("b", "1"), transactional=True).end(committed=False, first_offset=2).put(("c", "1"))
    last = LastOfProducer(PRODUCER, 0, last_data_offset=2)
    log.swap(list(clean(log.files, log.job(producers=[last]))))
    listed = decode_aborted(log.files.read(log.path(TXN_INDEX)), 0, "it")
    # The first one's batch was found in this round, so its marker and entry live for one more.
    assert [txn.first_offset for txn in listed] == [0, 2]
    log.swap(list(clean(log.files, log.job(producers=[last]))))
    listed = decode_aborted(log.files.read(log.path(TXN_INDEX)), 0, "it")
    assert [txn.first_offset for txn in listed] == [2]


def test_the_new_segment_is_indexed(log: Written) -> None:
    for number in range(40):
        log.put((f"k{number}", "v" * 50))
    list(clean(log.files, log.job()))
    base = offset_path(DIRECTORY, 0, "")
    size = log.files.size(Path(f"{base}{LOG}{CLEANED}"))
    index = OffsetIndex.open(log.files, Path(f"{base}{INDEX}{CLEANED}"), 0, size)
    offset, position = index.lookup(30)
    found = dict(batches(log.files.read(Path(f"{base}{LOG}{CLEANED}"))))
    assert found[position].last_offset == offset
    assert 20 < offset <= 30
    times = TimeIndex.open(log.files, Path(f"{base}{TIME_INDEX}{CLEANED}"), 0)
    assert times.last == TimestampOffset(39, 39)


def test_a_new_segment_is_indexed_although_the_limit_of_its_index_was_lowered(log: Written) -> None:
    """Otherwise the broker would index it again, on its loop."""
    for number in range(30):
        log.put((f"k{number}", "v" * 50_000))
    job = msgspec.structs.replace(log.job(segment_bytes=1 << 22), segment_index_bytes=4)
    list(clean(log.files, job))
    base = offset_path(DIRECTORY, 0, "")
    size = log.files.size(Path(f"{base}{LOG}{CLEANED}"))
    index = OffsetIndex.open(log.files, Path(f"{base}{INDEX}{CLEANED}"), 0, size)
    positions = [0, *(index.entries[n][1] for n in range(len(index.entries))), size]
    assert all(following - at < 600_000 for at, following in pairwise(positions))


def test_a_damaged_batch_stops_the_cleaning(log: Written) -> None:
    log.put(("a", "1")).put(("b", "1"))
    log.files.flip_bit(log.path(LOG), 8 * 100)
    with pytest.raises(CorruptFile, match="at byte"):
        list(clean(log.files, log.job()))


@pytest.mark.parametrize("byte", [0, 4, 7])
def test_a_damaged_offset_stops_the_cleaning(log: Written, byte: int) -> None:
    """No CRC covers the offset: the newest value of a key would be removed as an old one."""
    log.put(("a", "1")).put(("a", "2")).put(("b", "1"))
    for at, _ in batches(log.files.read(log.path(LOG))):
        log.files.flip_bit(log.path(LOG), 8 * (at + byte) + 1)
        with pytest.raises(CorruptFile, match="has a batch at offset"):
            list(clean(log.files, log.job()))
        log.files.flip_bit(log.path(LOG), 8 * (at + byte) + 1)
    list(clean(log.files, log.job()))


def test_a_segment_that_ends_within_a_batch_stops_the_cleaning(log: Written) -> None:
    log.put(("a", "1")).put(("b", "1" * 300))
    log.files.open(log.path(LOG)).truncate(log.files.size(log.path(LOG)) - 1)
    for io_buffer_bytes in (10, 100, 1000):
        with pytest.raises(CorruptFile, match="ends within the batch at byte"):
            list(clean(log.files, log.job(io_buffer_bytes=io_buffer_bytes)))
