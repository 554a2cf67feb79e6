"""Files that grow and rotate: which bytes of which file come next. Decisions only, no disk.

A file is known by its device and inode, as a rotation changes its name and nothing else; and by a
mark of its bytes up to where it was read, as inodes are used again and files are cut.
"""

from collections.abc import Mapping
from dataclasses import dataclass

HEAD_BYTES = 1024
TAIL_BYTES = 256
"""A mark covers so many bytes at the start of a file, and before where it was read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as the disk shows it now."""

    identity: str
    path: str
    lines_end: int
    """Behind the last line that is complete."""
    continues: bool = False
    """Whether it holds what was read of it before: else it is another file, or was cut."""


@dataclass(frozen=True, slots=True)
class Read:
    """How far a file was read, and where it was then."""

    path: str
    position: int
    mark: str = ""
    """Of the bytes before the position; empty in a checkpoint that had none."""
    generation: int = 0
    """How many files there were under this identity before."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to read: whole lines. `mark` is that of the file up to the end."""

    identity: str
    path: str
    start: int
    end: int
    mark: str = ""


def marked(position: int) -> tuple[range, range]:
    """The bytes that a mark at this position is made of."""
    head = min(HEAD_BYTES, position)
    return range(head), range(max(head, position - TAIL_BYTES), position)


Positions = dict[str, Read]


def advanced(read: Mapping[str, Read], seen: list[Seen]) -> Positions:
    """Where a batch ends; marks are still to be made. Files that are gone are forgotten."""
    found: Positions = {}
    for each in sorted(seen, key=lambda file: file.path):
        before = read.get(each.identity)
        if before is None:
            found[each.identity] = Read(each.path, each.lines_end)
        elif each.continues:
            end = max(before.position, each.lines_end)
            found[each.identity] = Read(each.path, end, generation=before.generation)
        else:
            found[each.identity] = Read(each.path, each.lines_end, generation=before.generation + 1)
    return found


def pieces(start: Mapping[str, Read], end: Mapping[str, Read]) -> list[Piece]:
    """What lies between two positions."""
    found = []
    for identity, last in end.items():
        before = start.get(identity)
        same = before is not None and before.generation == last.generation
        # A checkpoint of before there were marks tells a cut by a position that went back.
        first = before.position if before and same and before.position <= last.position else 0
        if first < last.position:
            found.append(Piece(identity, last.path, first, last.position, last.mark))
    return found


def is_complete(*, matches: bool, idle_s: float, rotate_wait_s: float) -> bool:
    """Whether a last line without an end is a line: of a file that was renamed, and that nobody
    has written to for a while. Whoever has it open may still be in the middle of that line.
    """
    return not matches and idle_s >= rotate_wait_s


def as_json(positions: Mapping[str, Read]) -> dict[str, object]:
    return {
        key: [each.path, each.position, each.mark, each.generation]
        for key, each in positions.items()
    }


def from_json(told: Mapping[str, object]) -> Positions:
    found: Positions = {}
    for key, value in told.items():
        assert isinstance(value, list)
        path, position, *more = value
        mark, generation = more or ("", 0)
        found[key] = Read(str(path), int(position), str(mark), int(generation))
    return found
