"""Whatever a log holds and however often it is cleaned: the newest value of each key stays.

Invariant 13: compaction keeps the newest value per key, and tombstones are honoured.
"""

from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.config.topic import TopicConfig
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.job import (
    CleanedGroup,
    CleaningJob,
    Finished,
    LastOfProducer,
    SegmentSize,
)
from penstock.log.compaction.offset_map import BYTES_PER_KEY
from penstock.log.compaction.swap import swap_in
from penstock.log.log_dir import LogDir
from penstock.log.open_segments import OpenSegments
from penstock.log.partition_log import PartitionLog
from penstock.log.producer_entry import ProducerEntry
from penstock.log.producer_snapshot import decode_snapshot
from penstock.log.recovery import load_log
from penstock.record.batch import batches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.record import Record, records
from penstock.testing.files import FakeFiles
from penstock.types import TopicPartition

DIRECTORY = Path("/data/t-0")
CONFIG = TopicConfig(cleanup_policy=("compact",), index_interval_bytes=50)
RETENTION_MS = 100
KEYS = [b"a", b"b", b"c", b"a key that is long enough to be hashed"]

batch_of_pairs = st.lists(
    st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.binary(max_size=3))),
    min_size=1,
    max_size=4,
)
writers = st.sampled_from([None, 7, 8])
STEPS = ["write"] * 4 + ["end", "roll", "clean"] * 2 + ["wait"]


@dataclass
class Model:
    """A log, and what a read_committed reader must find for each key."""

    files: FakeFiles = field(default_factory=FakeFiles)
    now_ms: int = 1000
    sequence: dict[int, int] = field(default_factory=dict)
    pending: dict[int, dict[bytes, bytes | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.files.make_dir(DIRECTORY)
        self.log = self.load()
        self.cleaned_to = 0

    def load(self) -> PartitionLog:
        log = load_log(
            self.files,
            LogDir(self.files, DIRECTORY.parent),
            DIRECTORY,
            TopicPartition("t", 0),
            CONFIG,
            open_segments=OpenSegments(),
            recovery_point=0,
            log_start_offset=0,
            clean=False,
            now_ms=self.now_ms,
        )
        log.advance_high_watermark(log.end_offset)
        return log

    def append(self, batch: bytearray, *, from_client: bool = True) -> None:
        self.log.append_as_leader(
            batch, read_header(batch), 0, self.now_ms, from_client=from_client
        )
        self.log.advance_high_watermark(self.log.end_offset)

    def write(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, producer: int | None
    ) -> None:
        made = [Record(n, self.now_ms, key, value, []) for n, (key, value) in enumerate(pairs)]
        if producer is None:
            self.append(build_batch(made, codec=codec))
            return
        first = self.sequence.get(producer, 0)
        self.sequence[producer] = first + len(made)
        self.append(
            build_batch(
                made,
                codec=codec,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=first,
                transactional=True,
            )
        )
        self.pending.setdefault(producer, {})

    def end(self, producer: int, *, committed: bool) -> None:
        if self.pending.pop(producer, None) is not None:
            marker = build_marker(
                producer_id=producer,
                producer_epoch=0,
                committed=committed,
                coordinator_epoch=0,
                timestamp=self.now_ms,
            )
            self.append(marker, from_client=False)

    def clean(self, keys: int) -> None:
        """One round over all stable closed segments."""
        stable = self.log.segments.floor(self.log.last_stable_offset)
        assert stable is not None
        closed = [
            SegmentSize(each.base_offset, each.size_bytes)
            for each in self.log.segments
            if each.base_offset < stable.base_offset
        ]
        if not closed or self.cleaned_to >= stable.base_offset:
            return
        job = CleaningJob(
            directory=str(DIRECTORY),
            segments=closed,
            first_dirty=self.cleaned_to,
            first_uncleanable=stable.base_offset,
            producers=[
                LastOfProducer(
                    entry.producer_id,
                    entry.producer_epoch,
                    entry.batches[-1].last_offset if entry.batches else None,
                )
                for entry in self.log.producers.producers.values()
            ],
            now_ms=self.now_ms,
            delete_retention_ms=RETENTION_MS,
            segment_bytes=1 << 20,
            segment_index_bytes=1 << 20,
            index_interval_bytes=50,
            dedupe_buffer_bytes=keys * BYTES_PER_KEY,
            io_buffer_bytes=200,
        )
        for answer in clean(self.files, job):
            if isinstance(answer, CleanedGroup):
                assert swap_in(self.files, self.log, answer, self.now_ms)
            if isinstance(answer, Finished):
                assert answer.cleaned_to > self.cleaned_to
                self.cleaned_to = answer.cleaned_to

    def seen(self) -> list[Record]:
        """What a read_committed reader gets, in order."""
        aborted = self.log.aborted_between(0, self.log.end_offset)
        offset, end = self.log.log_start_offset, self.log.last_stable_offset
        found = []
        while (piece := self.log.read(offset, 1 << 20, up_to=end)) is not None:
            data = piece.read()
            for at, header in batches(data):
                offset = header.next_offset
                dropped = header.is_control or any(
                    txn.producer_id == header.producer_id
                    and txn.first_offset <= header.base_offset < txn.last_offset
                    for txn in aborted
                )
                batch = data[at : at + header.size_bytes]
                found += [] if dropped else list(records(batch, header, 1 << 20))
        return found


def newest(found: list[Record]) -> dict[bytes | None, bytes]:
    """The live keys: a tombstone counts like a missing record."""
    values = {record.key: record.value for record in found}
    return {key: value for key, value in values.items() if value is not None}


def last_batches(log: PartitionLog) -> dict[int, ProducerEntry]:
    """The state of each producer that a snapshot keeps."""
    return {entry.producer_id: entry for entry in decode_snapshot(log.producers.snapshot(), "it")}


@given(st.data())
def test_cleaning_does_not_change_the_newest_values(data: st.DataObject) -> None:
    model = Model()
    for _ in range(data.draw(st.integers(1, 40))):
        match data.draw(st.sampled_from(STEPS)):
            case "write":
                pairs, codec = data.draw(batch_of_pairs), data.draw(st.sampled_from(Codec))
                model.write(pairs, codec, data.draw(writers))
            case "end":
                model.end(data.draw(st.sampled_from([7, 8])), committed=data.draw(st.booleans()))
            case "roll":
                model.log.roll(model.now_ms)
            case "wait":
                model.now_ms += data.draw(st.sampled_from([1, RETENTION_MS]))
            case _:
                before, end_offset = model.seen(), model.log.end_offset
                producers = last_batches(model.log)
                model.clean(data.draw(st.integers(1, 5)))
                after = model.seen()
                assert newest(after) == newest(before)
                assert model.log.end_offset == end_offset
                assert [r for r in before if r in after] == after  # none is new, none has moved
                recovered = model.load()
                assert recovered.end_offset == end_offset
                assert last_batches(recovered) == producers
                model.log = recovered
