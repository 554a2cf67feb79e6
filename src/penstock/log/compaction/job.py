"""The messages between broker and cleaning process: a job, then its results. Plain values."""

import sys
from typing import TypeAlias

import msgspec

from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES


class SegmentSize(msgspec.Struct, frozen=True):
    """Identifies a segment; one that another cleaning has put in its place has another size."""

    base_offset: int
    size_bytes: int


class LastOfProducer(msgspec.Struct, frozen=True):
    """The batch to keep for an active producer: its last, or else the marker of its epoch."""

    producer_id: int
    producer_epoch: int
    last_data_offset: int | None


class CleaningJob(msgspec.Struct, frozen=True, kw_only=True):
    """Clean `[first_dirty, first_uncleanable)` of the log in `directory`.

    `segments` are all that begin before `first_uncleanable`; none of them is active.
    """

    directory: str
    segments: list[SegmentSize]
    first_dirty: int
    first_uncleanable: int
    producers: list[LastOfProducer]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    generation: int = 0
    """The log's generation, which a truncation increments: data written since may have the same
    size.
    """
    dedupe_buffer_bytes: int = 128 << 20
    io_buffer_bytes: int = 512 << 10
    io_bytes_per_second: float = sys.float_info.max
    max_records_bytes: int = DECOMPRESSED_LIMIT_BYTES
    """The limit of Produce, so that compaction can read whatever was produced."""

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.segments)


class CleanedGroup(msgspec.Struct, frozen=True, tag=True):
    """The `.cleaned` files at `replaces[0].base_offset` can take the place of these segments."""

    replaces: list[SegmentSize]
    size_bytes: int
    generation: int = 0
    """The generation of the job."""

    @property
    def base_offset(self) -> int:
        return self.replaces[0].base_offset


class Finished(msgspec.Struct, frozen=True, tag=True):
    """All groups were answered; offsets before `cleaned_to` are clean now."""

    cleaned_to: int
    read_bytes: int
    written_bytes: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The log could not be cleaned; only groups that were answered before have changed.

    `is_damage`: another attempt would fail too, unless the log changes.
    """

    reason: str
    is_damage: bool


class Died(msgspec.Struct, frozen=True, tag=True):
    """The process ended before its job did, killed or by a bug."""

    exit_code: int


Answer: TypeAlias = CleanedGroup | Finished | Failed | Died
