"""The directory of a log, for threads that use it while the log may be moved."""

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock


@dataclass(slots=True)
class Home:
    """A partition's directory. It is renamed or abandoned only while no thread uses it."""

    directory: Path
    in_use: Lock = field(default_factory=Lock)
    is_gone: bool = False
    """The partition was deleted: its files need not survive."""
