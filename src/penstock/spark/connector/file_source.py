"""`penstock_files`: the lines of files that grow and rotate, as a stream that forgets none.

What was read is in the query's checkpoint. A file may be renamed while it is read, or cut; one
that was deleted before its last lines were read ends the query, unless failOnDataLoss is false.
"""

import glob
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.connector.tail import (
    Piece,
    Positions,
    Seen,
    advanced,
    as_json,
    from_json,
    pieces,
)
from penstock.spark.options import Options

CHUNK = 1 << 16
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
KNOWN = {"path", "failOnDataLoss"}

logger = logging.getLogger("penstock.spark")


class FileSource(DataSource):
    """Columns: `value`, a line without its end; `file`, its path; `position` of its first byte."""

    @classmethod
    def name(cls) -> str:
        return "penstock_files"

    def schema(self) -> str:
        return "value string, file string, position bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        options = Options(self.options)
        return FileReader(
            options.required("path"), fail_on_data_loss=options.flag("failOnDataLoss", default=True)
        )


class FilePartition(InputPartition):
    """One file's next lines."""

    def __init__(self, piece: Piece, pattern: str) -> None:
        super().__init__(piece)
        self.piece, self.pattern = piece, pattern


class FileReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """In the driver it looks at folders; tasks read the bytes, so they must see the same disk."""

    def __init__(self, pattern: str, *, fail_on_data_loss: bool) -> None:
        self._pattern, self._fail = pattern, fail_on_data_loss
        self._ends = False
        self._target: Positions | None = None
        """Where an availableNow run ends."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """The target waits for the first start: only that tells which renamed files are ours."""
        self._ends = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        if self._target is not None:
            return as_json(self._target)
        read = from_json(start)
        found = advanced(read, files(self._pattern, set(read)), None)
        if self._ends:
            self._target = found
        return as_json(found)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        found = pieces(from_json(start), from_json(end))
        return [FilePartition(each, self._pattern) for each in found]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int]]:
        assert isinstance(partition, FilePartition)
        piece = partition.piece
        path = current_path(piece.identity, piece.path, partition.pattern)
        if path is None:
            lost = (
                f"{piece.path}: bytes {piece.start} to {piece.end} were deleted before being read"
            )
            if self._fail:
                raise ConfigError(f"{lost}; set failOnDataLoss to false to go on without them")
            logger.warning(lost)
            return
        position = piece.start
        with path.open("rb") as file:
            file.seek(position)
            while position < piece.end:
                line = file.readline()
                if not line:
                    return
                text = line.rstrip(b"\r\n").decode(errors="replace")
                yield text, str(path), position
                position += len(line)


def files(pattern: str, known: set[str] | None = None) -> list[Seen]:
    """The files that fit the pattern, and those that did when they were last looked at."""
    found: dict[str, Seen] = {}
    for path in candidates(pattern, with_renamed=bool(known)):
        try:
            with path.open("rb") as file:
                identity = identity_of(os.fstat(file.fileno()))
                fits = matches(path, pattern)
                if identity in found or not (fits or identity in (known or ())):
                    continue
                # A rotated file is complete, even if its last line has no end.
                end = lines_end(file) if fits else os.fstat(file.fileno()).st_size
                found[identity] = Seen(identity, str(path), end)
        except (FileNotFoundError, IsADirectoryError):
            continue  # rotated away this instant: the next look sees it
    return list(found.values())


def candidates(pattern: str, *, with_renamed: bool) -> list[Path]:
    paths = matching(pattern)
    if with_renamed:
        folders = {each.parent for each in paths} or {Path(expanded(pattern)).parent}
        paths += [each for folder in folders if folder.is_dir() for each in folder.iterdir()]
    return sorted({each for each in paths if each.is_file() and each.suffix not in PACKED})


def matching(pattern: str) -> list[Path]:
    return [Path(each) for each in glob.glob(expanded(pattern))]  # noqa: PTH207 - of any folder


def expanded(pattern: str) -> str:
    return str(Path(pattern) / "*") if Path(pattern).is_dir() else pattern


def matches(path: Path, pattern: str) -> bool:
    return path in matching(pattern)


def identity_of(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def lines_end(file: Any) -> int:
    """Behind the last newline: what follows it is still being written."""
    end: int = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - CHUNK)
        file.seek(start)
        found: int = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def current_path(identity: str, path: str, pattern: str) -> Path | None:
    """Where a file is now."""
    for each in [Path(path), *candidates(pattern, with_renamed=True)]:
        try:
            if identity_of(each.stat()) == identity:
                return each
        except FileNotFoundError:
            continue
    return None
