"""Decides which bytes of growing and rotating files come next. No I/O.

A file is identified by device and inode, since a rotation changes only its name; and by a mark of
its bytes up to where it was read, since inodes are reused and files are truncated.
"""

import os.path
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from penstock.spark.connector import position_version

VERSION: Final = 1
"""Version of the JSON of positions."""
_ROTATION: Final = re.compile(r"[.\-_]\d[\d.\-_:T]*")
"""What a rotation appends to a name: a number or a date."""
HEAD_BYTES = 1024
TAIL_BYTES = 256
"""A mark covers this many bytes at the start of a file, and before the read position."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as the disk shows it now."""

    identity: str
    path: str
    lines_end: int
    """The end of the last complete line."""
    written_ns: int = 0
    """When it was last written to."""
    continues: bool = False
    """Whether it still holds what was read of it; else it is another file, or was truncated."""
    fits: bool = True
    """Whether its name matches the pattern; if not, a rotation renamed it."""
    copy_of: str = ""
    """The file whose lines it repeats, and which was truncated since (`copytruncate`)."""
    starts: str = ""
    """The live file that begins the same: this one may be a copy in the making."""


@dataclass(frozen=True, slots=True)
class FilePosition:
    """How far a file was read, and its path then."""

    path: str
    position: int
    mark: str = ""
    """Mark of the bytes before the position; empty in older checkpoints."""
    generation: int = 0
    """How many files had this identity before."""
    written_ns: int = 0
    """When lines before the position were last written, or an empty file was made; 0 in older
    checkpoints.
    """
    copied: int = 0
    """How many of its bytes were read in the original."""
    copy_of: str = ""
    """The file that it seems to become a copy of; not read until that file is truncated."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to read, whole lines. `mark` covers the file up to the end."""

    identity: str
    path: str
    start: int
    end: int
    mark: str = ""


def marked(position: int) -> tuple[range, range]:
    """The bytes that a mark at this position covers."""
    head = min(HEAD_BYTES, position)
    return range(head), range(max(head, position - TAIL_BYTES), position)


Positions = dict[str, FilePosition]


def names_before(rotated: str) -> list[str]:
    """The names that the file may have had before it was rotated."""
    return [rotated[:at] for at in range(1, len(rotated)) if _ROTATION.fullmatch(rotated, at)]


def paths_before(rotated: str) -> list[str]:
    folder, name = os.path.split(rotated)
    return [os.path.join(folder, each) for each in names_before(name)]  # noqa: PTH118 - no disk


def rotated_since(read: Mapping[str, FilePosition], live: Collection[str]) -> int | None:
    """The earliest time at which a file that came and was rotated between two looks may have been
    written. Files rotated before the first look were not written to since the others were read.

    `live` are the paths that it may have had: the times of other logs say little about it.
    """
    timed = [each for each in read.values() if each.written_ns]
    same = [each for each in timed if {each.path, *paths_before(each.path)} & {*live}]
    return min((each.written_ns for each in same or timed), default=None)


def vanished(
    read: Mapping[str, FilePosition], seen: list[SeenFile], live: str
) -> FilePosition | None:
    """The file that had this name at the last look, unless it is still there or was truncated.

    If others were rotated meanwhile, a file with its inode and its name is another file.
    """
    remaining = {each.identity for each in seen if each.continues} | {each.copy_of for each in seen}
    if not any(is_new_rotated(each) for each in seen):
        remaining |= {each.identity for each in seen if each.fits}
    gone = (each for identity, each in read.items() if identity not in remaining)
    return next((each for each in gone if each.path == live), None)


def is_new_rotated(seen: SeenFile) -> bool:
    return not (seen.fits or seen.continues or seen.copy_of or seen.starts)


def advanced(read: Mapping[str, FilePosition], seen: list[SeenFile]) -> Positions:
    """The positions at the end of a batch, without marks. Forgets files that are gone."""
    found: Positions = {}
    copies = copies_of_cut(read, seen)
    for each in sorted(seen, key=lambda file: file.path):
        before = read.get(each.identity)
        generation = 0 if before is None else before.generation + (not each.continues)
        if each.identity in copies:
            copied = min(each.lines_end, read[each.copy_of].position)
            found[each.identity] = FilePosition(
                each.path, each.lines_end, "", generation, each.written_ns, copied
            )
        elif each.starts:
            found[each.identity] = FilePosition(
                each.path, 0, "", generation, each.written_ns, copy_of=each.starts
            )
        elif before is not None and each.continues and each.lines_end <= before.position:
            found[each.identity] = replace(before, path=each.path, copy_of="")
        else:
            found[each.identity] = FilePosition(
                each.path, each.lines_end, "", generation, each.written_ns
            )
    return found


def copies_of_cut(read: Mapping[str, FilePosition], seen: list[SeenFile]) -> set[str]:
    """The copies of truncated files: those seen while they were made, and for each original the
    oldest one that has everything that was read of it. Others that begin the same hold lines
    written after the truncation.
    """
    found: set[str] = set()
    whole: set[str] = set()
    watched = {identity for identity, each in read.items() if each.copy_of}
    for each in sorted(seen, key=lambda file: (file.identity not in watched, file.written_ns)):
        if each.copy_of and (each.identity in watched or each.copy_of not in whole):
            found.add(each.identity)
            if each.lines_end >= read[each.copy_of].position:
                whole.add(each.copy_of)
    return found


def pieces(start: Mapping[str, FilePosition], end: Mapping[str, FilePosition]) -> list[Piece]:
    """The bytes to read between two positions."""
    found = []
    for identity, last in end.items():
        before = start.get(identity)
        same = before is not None and before.generation == last.generation
        # In older checkpoints without marks, a position that went back means a truncation.
        first = before.position if before and same and before.position <= last.position else 0
        first = max(first, last.copied)
        if first < last.position:
            found.append(Piece(identity, last.path, first, last.position, last.mark))
    return found


def is_complete(*, matches: bool, idle_s: float, rotate_wait_s: float) -> bool:
    """Whether a last line without newline counts: in a renamed file that has been idle for a while.
    Otherwise a process that has it open may still be writing that line.
    """
    return not matches and idle_s >= rotate_wait_s


def as_json(positions: Mapping[str, FilePosition]) -> dict[str, object]:
    found: dict[str, object] = {position_version.KEY: VERSION}
    for key, each in positions.items():
        found[key] = [getattr(each, field.name) for field in fields(FilePosition)]
    return found


def from_json(positions: Mapping[str, object]) -> Positions:
    """The positions in JSON of `as_json`, or of an older checkpoint."""
    position_version.refuse_newer(positions, VERSION)
    found: Positions = {}
    for key, value in positions.items():
        if key != position_version.KEY:
            assert isinstance(value, list)
            found[key] = FilePosition(*value)
    return found
