"""Files that a crash left in a partition's directory, resolved as Kafka's loader does.

`.deleted` files are garbage. `.cleaned` files are of a compaction that did not finish. `.swap`
files are of one that did: they only have to replace the segments they were made from.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from penstock.log.corrupt import CorruptFile
from penstock.log.files import TEMPORARY, Files
from penstock.log.scan import spans
from penstock.log.segment_files import CLEANED, DELETED, INDEX, LOG, SWAP, TIME_INDEX, TXN_INDEX
from penstock.record.batch import CorruptBatch

logger = logging.getLogger(__name__)

OFFSET_DIGITS = 20


def offset_of(name: str) -> int | None:
    """The base offset that a file's name begins with."""
    digits = name[:OFFSET_DIGITS]
    return int(digits) if len(digits) == OFFSET_DIGITS and digits.isdigit() else None


def base_offsets(names: Iterable[str]) -> list[int]:
    """The base offsets of the segments among these files, ascending."""
    found = (offset_of(name) for name in names if name.endswith(LOG))
    return sorted(offset for offset in found if offset is not None)


def resolve_leftovers(files: Files, directory: Path) -> None:
    """Remove everything but segments, their indexes and snapshots."""
    names = files.names(directory)
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    unfinished_from = min(_offsets(cleaned), default=None)
    garbage = [name for name in names if name.endswith((DELETED, TEMPORARY))] + cleaned
    # Swap files beside unfinished ones are part of the same replacement: it was not complete.
    if unfinished_from is not None:
        void = [name for name in swaps if (offset_of(name) or 0) >= unfinished_from]
        garbage += void
        swaps = [name for name in swaps if name not in void]
    for name in garbage:
        logger.info("%s: removed, it is left over", directory / name)
        files.remove(directory / name)
    if swaps:
        _complete_swap(files, directory, swaps)
    _remove_orphaned_indexes(files, directory)
    if garbage or swaps:
        files.sync_dir(directory)


def _offsets(names: Iterable[str]) -> list[int]:
    return [offset for offset in map(offset_of, names) if offset is not None]


def _complete_swap(files: Files, directory: Path, swaps: list[str]) -> None:
    bases = _offsets(name for name in swaps if name.endswith(LOG + SWAP))
    if bases:
        # At least the first segment: what replaces it may be empty, and an old index of aborted
        # transactions would outlive their markers.
        start = min(bases)
        end = max(start + 1, *(_swap_end(files, directory, base) for base in bases))
        for name in files.names(directory):
            offset = offset_of(name)
            if offset is not None and start <= offset < end and not name.endswith(SWAP):
                logger.info("%s: removed, compaction has replaced it", directory / name)
                files.remove(directory / name)
    for name in swaps:
        files.rename(directory / name, directory / name.removesuffix(SWAP))


def _swap_end(files: Files, directory: Path, base_offset: int) -> int:
    """The offset after the last batch of a segment whose files still end in `.swap`."""
    path = directory / f"{base_offset:020d}{LOG}{SWAP}"
    end = base_offset
    file = files.open(path)
    try:
        for _, _, last_offset, _ in spans(file, 0, file.size):
            end = last_offset + 1
    except CorruptBatch as error:
        raise CorruptFile(str(path), str(error)) from None
    return end


def _remove_orphaned_indexes(files: Files, directory: Path) -> None:
    names = files.names(directory)
    bases = set(base_offsets(names))
    for name in names:
        if name.endswith((INDEX, TIME_INDEX, TXN_INDEX)) and offset_of(name) not in bases:
            logger.warning("%s: removed, it belongs to no segment", directory / name)
            files.remove(directory / name)
