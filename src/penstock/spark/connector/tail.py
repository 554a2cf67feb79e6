"""Files that grow and rotate: which bytes of which file come next. Decisions only, no disk.

A file is known by its device and inode, as a rotation changes its name and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as the disk shows it now."""

    identity: str
    path: str
    lines_end: int
    """Behind the last line that is complete."""


@dataclass(frozen=True, slots=True)
class Read:
    """How far a file was read, and where it was then."""

    path: str
    position: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes to read: whole lines."""

    identity: str
    path: str
    start: int
    end: int


Positions = dict[str, Read]


def advanced(read: Mapping[str, Read], seen: list[Seen], at_most_bytes: int | None) -> Positions:
    """Where a batch ends. Files that are gone are forgotten; of a shorter one it is clear that it
    was cut and is written anew.
    """
    found: Positions = {}
    room = at_most_bytes
    for each in sorted(seen, key=lambda file: file.path):
        before = read.get(each.identity)
        start = 0 if before is None or before.position > each.lines_end else before.position
        end = each.lines_end
        if room is not None:
            # At least one file goes on however small the limit: its reader cuts at a line's end.
            end = min(end, start + room)
            room -= end - start
        found[each.identity] = Read(each.path, end)
    return found


def pieces(start: Mapping[str, Read], end: Mapping[str, Read]) -> list[Piece]:
    """What lies between two positions."""
    found = []
    for identity, last in end.items():
        before = start.get(identity)
        first = 0 if before is None or before.position > last.position else before.position
        if first < last.position:
            found.append(Piece(identity, last.path, first, last.position))
    return found


def as_json(positions: Mapping[str, Read]) -> dict[str, object]:
    return {key: [each.path, each.position] for key, each in positions.items()}


def from_json(told: Mapping[str, object]) -> Positions:
    found: Positions = {}
    for key, value in told.items():
        assert isinstance(value, list)
        path, position = value
        found[key] = Read(str(path), int(position))
    return found
