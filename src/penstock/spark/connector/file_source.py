"""`penstock_files`: the lines of files that grow and rotate, as a stream that loses none.

The query's checkpoint has the positions. A file may be renamed while it is read, and truncated
after it was read. One that is deleted or truncated earlier ends the query, unless failOnDataLoss
is false.
"""

import glob
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.spark.client.security import SECURITY
from penstock.spark.connector.tail import (
    FilePosition,
    Piece,
    Positions,
    SeenFile,
    advanced,
    as_json,
    from_json,
    is_complete,
    marked,
    names_before,
    pieces,
    rotated_since,
    vanished,
)
from penstock.spark.options import SUPPORTED, Options, Use

KNOWN: Final[Mapping[str, Use]] = {
    **dict.fromkeys(("path", "failOnDataLoss", "rotateWaitSeconds"), SUPPORTED),
    **{f"kafka.{name}": use for name, use in SECURITY.items()},
}
"""Options; the `kafka.` ones are for a flow's dead letters."""
CHUNK = 1 << 16
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")
ROTATE_WAIT_S = 10
"""A renamed file must be idle this long before a last line without newline counts as a line."""
LOOKS = 10
"""How often to search for a file: one that is renamed meanwhile escapes a search."""

logger = logging.getLogger("penstock.spark")


class FileSource(DataSource):
    """Columns: `value`, a line without newline; `file`, its path; `position` of its first byte."""

    @classmethod
    def name(cls) -> str:
        return "penstock_files"

    def schema(self) -> str:
        return "value string, file string, position bigint"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        options = Options(self.options)
        options.warnings(KNOWN)
        return FileReader(
            options.required("path"),
            fail_on_data_loss=options.flag("failOnDataLoss", default=True),
            rotate_wait_s=options.integer("rotateWaitSeconds", ROTATE_WAIT_S),
        )


class FilePartition(InputPartition):
    """One file's next lines."""

    def __init__(self, piece: Piece, pattern: str) -> None:
        super().__init__(piece)
        self.piece, self.pattern = piece, pattern


class FileReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The driver looks at folders, and tasks read the bytes: both must see the same disk."""

    def __init__(
        self, pattern: str, *, fail_on_data_loss: bool, rotate_wait_s: int = ROTATE_WAIT_S
    ) -> None:
        self._pattern, self._fail, self._wait_s = pattern, fail_on_data_loss, rotate_wait_s
        self._ends = False
        self._target: Positions | None = None
        """Where an availableNow run ends."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return as_json({})

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """`latestOffset` sets the target: its start tells which renamed files belong to it."""
        self._ends = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        if self._target is not None:
            return as_json(self._target)
        read = from_json(start)
        seen = files(self._pattern, read, self._wait_s)
        self._check_kept(read, seen)
        found = with_marks(advanced(read, seen), self._pattern)
        if self._ends:
            self._target = found
        return as_json(found)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        found = pieces(from_json(start), from_json(end))
        return [FilePartition(each, self._pattern) for each in found]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int]]:
        assert isinstance(partition, FilePartition)
        piece = partition.piece
        file = opened(piece.identity, piece.path, partition.pattern)
        if file is None:
            self._lost(piece, "were deleted")
            return
        position = piece.start
        with file:
            if piece.mark and mark_of(file, piece.end) != piece.mark:
                self._lost(piece, "were truncated or overwritten")
                return
            file.seek(position)
            while position < piece.end:
                line = file.readline(piece.end - position)
                if not line:
                    self._lost(piece, "were truncated")
                    return
                text = line.rstrip(b"\r\n").decode(errors="replace")
                yield text, file.name, position
                position += len(line)

    def _check_kept(self, read: Positions, seen: list[SeenFile]) -> None:
        """Report a lost file, if the pattern is a file name: files of a folder may be removed."""
        lost = vanished(read, seen, str(Path(self._pattern)))
        if lost is not None:
            self._report_loss(
                f"{lost.path} was deleted or packed after byte {lost.position} was read; what "
                "followed, and files that had this name since, may be lost"
            )

    def _lost(self, piece: Piece, what: str) -> None:
        self._report_loss(
            f"{piece.path}: bytes {piece.start} to {piece.end} {what} before being read"
        )

    def _report_loss(self, lost: str) -> None:
        if self._fail:
            raise ConfigError(f"{lost}; set failOnDataLoss to false to go on without them")
        logger.warning(lost)


def files(pattern: str, read: Mapping[str, FilePosition], rotate_wait_s: float) -> list[SeenFile]:
    """The files that match the pattern, those that matched at the last look, and those that
    appeared and were rotated since.
    """
    look = FilesLook(pattern, read, rotate_wait_s)
    # A copy is examined after its original.
    for identity, each in sorted(read.items(), key=lambda known: known[1].copy_of != ""):
        known = opened(identity, each.path, pattern)
        if known is not None:
            with known:
                look.at(known)
    for path in candidates(pattern, with_renamed=bool(read)):
        with suppress(FileNotFoundError, IsADirectoryError), path.open("rb") as file:
            look.at(file)
    return list(look.found.values())


class FilesLook:
    """One look at the files; a live file comes before its rotated ones."""

    def __init__(
        self, pattern: str, read: Mapping[str, FilePosition], rotate_wait_s: float
    ) -> None:
        self._pattern, self._read, self._wait_s = pattern, read, rotate_wait_s
        self._live = {*matching(pattern)}
        self.found: dict[str, SeenFile] = {}

    def at(self, file: BinaryIO) -> None:
        path, status = Path(file.name), os.fstat(file.fileno())
        identity, size, fits = identity_of(status), status.st_size, path in self._live
        if identity in self.found:
            return
        before, copy_of, starts = self._read.get(identity), "", ""
        continues = before is not None and is_continued(file, size, before)
        # A file that was not read yet is known only by its inode, which may be reused.
        is_known = before is not None and continues and (before.position > 0 or size == 0)
        if not is_known or (before is not None and before.copy_of):
            was_live = {path.with_name(each) for each in names_before(path.name)} & self._live
            supposed = "" if before is None else before.copy_of
            copy_of = self._cut_since(file, size, was_live, supposed)
            is_ours = fits or continues or copy_of
            if not is_ours and not self._is_since(status.st_mtime_ns, was_live):
                return
            starts = self._begins_alike(file, size, was_live)
        idle_s = time.time() - status.st_mtime
        complete = is_complete(matches=fits, idle_s=idle_s, rotate_wait_s=self._wait_s)
        end = size if complete else lines_end(file)
        self.found[identity] = SeenFile(
            identity, str(path), end, status.st_mtime_ns, continues, fits, copy_of, starts
        )

    def _is_since(self, written_ns: int, was_live: set[Path]) -> bool:
        if not was_live:
            return False
        since = rotated_since(self._read, {str(each) for each in was_live})
        return since is not None and written_ns >= since

    def _cut_since(self, file: BinaryIO, size: int, was_live: set[Path], supposed: str) -> str:
        """The file that was truncated or is gone, and whose lines this file repeats."""
        for identity, each in self._read.items():
            now = self.found.get(identity)
            if Path(each.path) not in was_live or (now is not None and now.continues):
                continue
            if (identity == supposed and now is not None) or repeats(file, size, each):
                return identity
        return ""

    def _begins_alike(self, file: BinaryIO, size: int, was_live: set[Path]) -> str:
        """The live file that this one may copy: unfinished, or from before the truncation."""
        for identity, now in self.found.items():
            before = self._read.get(identity)
            if Path(now.path) not in was_live or before is None or before.path != now.path:
                continue  # a log whose live file changes is renamed, not copied
            whole = opened(identity, now.path, self._pattern)
            if whole is None:
                continue
            with whole:
                if os.fstat(whole.fileno()).st_size >= size:
                    alike = mark_of(whole, size) == mark_of(file, size)
                else:  # truncated just now
                    alike = now.continues and repeats(file, size, before)
            if alike:
                return identity
        return ""


def repeats(file: BinaryIO, size: int, other: FilePosition) -> bool:
    """Whether the file holds everything that was read of another one."""
    return bool(other.position and other.mark) and is_continued(file, size, other)


def is_continued(file: BinaryIO, size: int, before: FilePosition) -> bool:
    if size < before.position:
        return False
    return not before.mark or mark_of(file, before.position) == before.mark


def with_marks(positions: Positions, pattern: str) -> Positions:
    """Adds each file's mark; a file that vanishes meanwhile is noticed when it is read."""
    found = {}
    for identity, each in positions.items():
        found[identity] = each
        file = opened(identity, each.path, pattern)
        if file is not None:
            with file:
                found[identity] = replace(each, mark=mark_of(file, each.position))
    return found


def mark_of(file: BinaryIO, position: int) -> str:
    """A hash of few bytes, since every batch computes one for every file."""
    digest = sha256()
    for part in marked(position):
        file.seek(part.start)
        digest.update(file.read(len(part)))
    return digest.hexdigest()[:16]


def candidates(pattern: str, *, with_renamed: bool) -> list[Path]:
    paths = matching(pattern)
    if with_renamed:
        given = Path(pattern)
        folders = {each.parent for each in paths} or {given if given.is_dir() else given.parent}
        paths += [each for folder in folders if folder.is_dir() for each in folder.iterdir()]
    return sorted({each for each in paths if each.is_file() and each.suffix not in PACKED})


def matching(pattern: str) -> list[Path]:
    return [Path(each) for each in glob.glob(expanded(pattern))]  # noqa: PTH207 - of any folder


def expanded(pattern: str) -> str:
    return str(Path(glob.escape(pattern)) / "*") if Path(pattern).is_dir() else pattern


def identity_of(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}"


def lines_end(file: Any) -> int:
    """The position after the last newline: what follows is still being written."""
    end: int = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - CHUNK)
        file.seek(start)
        found: int = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def opened(identity: str, path: str, pattern: str) -> BinaryIO | None:
    """The file with this identity, wherever it is now; None if it is gone."""
    for _ in range(LOOKS):
        for each in [Path(path), *candidates(pattern, with_renamed=True)]:
            with suppress(FileNotFoundError, IsADirectoryError):
                if identity_of(each.stat()) != identity:
                    continue
                file = each.open("rb")
                if identity_of(os.fstat(file.fileno())) == identity:
                    return file
                file.close()
    return None
