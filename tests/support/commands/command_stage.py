"""Where commands are tried."""

from pathlib import Path
from typing import NamedTuple


class Stage(NamedTuple):
    """A broker's data directory and address."""

    folder: Path
    bootstrap: str
