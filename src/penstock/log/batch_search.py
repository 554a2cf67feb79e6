"""Searches the file of one segment for the batch that has an offset."""

from typing import Final, Protocol

from penstock.log.files import LogFile
from penstock.log.offset_index import OffsetIndex
from penstock.log.scan import spans
from penstock.log.segment_indexes import MAX_RELATIVE_OFFSET
from penstock.record.batch import CorruptBatch

NOWHERE: Final = (-1, 0)


class DamagedOffset(CorruptBatch):
    """A base offset that no rebuilt index can repair: it is out of order among the batches.

    No CRC covers base offsets. Readers of other batches are served.
    """


class Searchable(Protocol):
    """A segment, as a search uses it."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def file(self) -> LogFile: ...

    @property
    def offset_index(self) -> OffsetIndex: ...


class BatchSearch:
    """The searches in one segment. A sequential reader goes on where the last search ended."""

    __slots__ = ("_after",)

    def __init__(self) -> None:
        self._after = NOWHERE
        """Offset and position after the last batch found: a sequential reader requests it next."""

    def forget(self) -> None:
        """Begin anew: the segment was truncated, or an error ended the last search."""
        self._after = NOWHERE

    def find(self, segment: Searchable, offset: int) -> tuple[int, int] | None:
        """Position and size of the batch that holds `offset`, or of the first one after it.

        Raises `CorruptBatch` if the index or a batch is wrong.
        """
        after_offset, after = self._after
        size_bytes, first_offset = segment.size_bytes, segment.base_offset
        is_next = offset == after_offset and after < size_bytes
        entry_offset, position = self._after if is_next else segment.offset_index.lookup(offset)
        # An entry's batch may begin before the entry's offset, and the first batch before the base
        # offset.
        before = offset - 1 if is_next else -1
        found: tuple[int, int] | None = None
        is_behind_entry = False
        if position >= size_bytes > 0:
            raise CorruptBatch("an index entry points behind the end")
        file = segment.file
        for at, base_offset, last_offset, size in spans(file, position, size_bytes):
            if base_offset <= before:
                raise DamagedOffset(f"{file.path}: offset {base_offset} follows {before}")
            if found is not None or is_behind_entry:
                break
            if at == position and not is_next and position > 0:
                # The next batch tells whether the entry is wrong, or the batch.
                is_behind_entry = base_offset > entry_offset
            elif not 0 <= last_offset - first_offset <= MAX_RELATIVE_OFFSET:
                raise DamagedOffset(f"{file.path}: offset {last_offset} is too far")
            before = last_offset
            if last_offset >= offset and not is_behind_entry:
                found = at, size
                if base_offset <= offset:
                    break
                if offset == entry_offset and position > 0 and not is_next:
                    raise CorruptBatch("an index entry is of no batch")
                # The next batch tells whether this one follows a gap, or is damaged.
        if is_behind_entry:
            raise CorruptBatch("the batch lies behind its index entry")
        if found is not None:
            self._after = before + 1, found[0] + found[1]
        return found
