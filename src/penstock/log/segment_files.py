"""The names of a segment's files."""

from pathlib import Path
from typing import Final

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SEGMENT_FILES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)


def offset_path(directory: Path, offset: int, suffix: str) -> Path:
    return directory / f"{offset:020d}{suffix}"
