"""A broker for tests of commands."""

from pathlib import Path
from typing import NamedTuple


class Stage(NamedTuple):
    """A broker's data directory and address."""

    folder: Path
    bootstrap: str
