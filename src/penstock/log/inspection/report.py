"""The result of a verification: damage by file, remarks, and how much was checked."""

from dataclasses import dataclass, field
from pathlib import Path

import msgspec


class FileFinding(msgspec.Struct, frozen=True):
    """Something about one file."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(slots=True)
class VerificationReport:
    """Damage is what a broker would have to repair or could not read; remarks are not damage."""

    damage: list[FileFinding] = field(default_factory=list)
    remarks: list[FileFinding] = field(default_factory=list)
    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0

    def damaged(self, path: Path, what: str) -> None:
        self.damage.append(FileFinding(str(path), what))

    def remark(self, path: Path, what: str) -> None:
        self.remarks.append(FileFinding(str(path), what))
