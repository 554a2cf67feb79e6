"""Where a log's files are, for threads that work in there while the log may be moved."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock


@dataclass(slots=True)
class Home:
    """A partition's directory. It is renamed, or abandoned, only while nobody has it in use."""

    directory: Path
    in_use: Lock = field(default_factory=Lock)
    is_gone: bool = False
    """The partition was deleted: nothing in here needs to survive."""
