"""The segments of one log by base offset: rolled, deleted, replaced."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penstock.log.delayed_removals import DelayedRemovals
from penstock.log.files import Files
from penstock.log.home import Home
from penstock.log.open_segments import OpenSegments
from penstock.log.retention import SegmentInfo
from penstock.log.segment import Segment
from penstock.log.segment_files import LOG, SEGMENT_FILES, SWAP, offset_path
from penstock.log.segment_indexes import IndexLimits


class Segments:
    """The segments in ascending order, never empty; only the last one, the active one, grows.

    `limits` are for segments opened from now on.
    """

    __slots__ = (
        "_bases",
        "_deleted",
        "_files",
        "_open",
        "_segments",
        "active",
        "home",
        "limits",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        limits: IndexLimits,
        open_segments: OpenSegments,
        *,
        base_offsets: Iterable[int],
        now_ms: int,
    ) -> None:
        self._files = files
        self.home = Home(directory)
        self.limits = limits
        self._open = open_segments
        self._segments: list[Segment] = []
        self._deleted: DelayedRemovals[Path] = DelayedRemovals()
        self.replace([], [self.segment_at(base, now_ms) for base in base_offsets])

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def directory(self) -> Path:
        return self.home.directory

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def floor(self, offset: int) -> Segment | None:
        """The segment whose range has `offset`; None before the first."""
        if offset >= self.active.base_offset:
            return self.active
        number = bisect_right(self._bases, offset)
        return self._segments[number - 1] if number else None

    def since(self, offset: int) -> list[Segment]:
        """The segment that has `offset`, and all later ones."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0) :]

    def end_of(self, segment: Segment) -> int | None:
        """The base offset of the next segment; None for the active one."""
        number = bisect_right(self._bases, segment.base_offset)
        return self._bases[number] if number < len(self._bases) else None

    def infos(self, end_offset: int) -> Iterator[SegmentInfo]:
        """The segments for retention, one by one: each may have to be opened for its newest
        timestamp.
        """
        for segment, end in zip(self._segments, [*self._bases[1:], end_offset], strict=True):
            yield SegmentInfo(
                segment.base_offset,
                end,
                segment.size_bytes,
                segment.newest_ms,
                active=segment is self.active,
            )

    def segment_at(self, base_offset: int, now_ms: int) -> Segment:
        """The segment whose files have this base offset; it is not added to the others."""
        return Segment(
            self._files,
            self.directory,
            base_offset,
            self._files.size(offset_path(self.directory, base_offset, LOG)),
            limits=self.limits,
            created_ms=now_ms,
            open_segments=self._open,
        )

    def roll(self, base_offset: int, now_ms: int) -> None:
        """Close the active segment and begin another at `base_offset`."""
        self.active.close()
        self.begin([], base_offset, now_ms)

    def begin(self, old: Iterable[Segment], base_offset: int, now_ms: int) -> None:
        """Replace `old` by an empty segment."""
        self._files.open(offset_path(self.directory, base_offset, LOG), create=True).close()
        self.replace(old, [self.segment_at(base_offset, now_ms)])

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Swap some segments for others in one step; the caller takes care of the files."""
        gone = set(old)
        kept = [segment for segment in self._segments if segment not in gone]
        self._segments = sorted([*kept, *new], key=lambda segment: segment.base_offset)
        self._bases = [segment.base_offset for segment in self._segments]
        self.active = self._segments[-1]

    def delete_first(self, count: int, delay_ms: int) -> None:
        """Drop the oldest segments; their files stay, renamed, for `delay_ms`."""
        old = self._segments[:count]
        self.replace(old, [])
        for segment in old:
            self._remove_later(segment.rename_deleted(), delay_ms)

    def swap_in(self, old: list[Segment], base_offset: int, *, now_ms: int, delay_ms: int) -> None:
        """Let the `.swap` files at `base_offset` take the place of `old`.

        The log file is renamed first: if it were last, a crash just before would make the restart
        replace the other files that already have their names.
        """
        doomed = []
        for segment in old:
            keep_snapshot = segment.base_offset == base_offset
            doomed += segment.rename_deleted(keep_snapshot=keep_snapshot)
        for suffix in SEGMENT_FILES:
            swap = offset_path(self.directory, base_offset, suffix + SWAP)
            if self._files.exists(swap):
                self._files.rename(swap, swap.with_name(swap.name.removesuffix(SWAP)))
        self.replace(old, [self.segment_at(base_offset, now_ms)])
        self._remove_later(doomed, delay_ms)

    def _remove_later(self, paths: list[Path], delay_ms: int) -> None:
        for path in paths:
            self._deleted.add(delay_ms, path)

    def removal(self, monotonic_ms: int) -> Callable[[], None]:
        """A function, for any thread, that removes the renamed files that are due.

        The file system may take long over a large one.
        """
        names = [path.name for path in self._deleted.due(monotonic_ms)]

        def remove() -> None:
            for name in names:
                with self.home.in_use:
                    self._files.remove(self.home.directory / name)

        return remove

    def remove_deleted(self, monotonic_ms: int) -> None:
        """Remove the due files now, on this thread."""
        self.removal(monotonic_ms)()

    @property
    def has_deleted(self) -> bool:
        """Whether renamed files wait for their removal."""
        return bool(self._deleted)

    def truncate_to(self, offset: int) -> None:
        """Truncate durably at `offset`, which must not lie before the first segment.

        Synced at once: a crash must not bring back removed batches after newly written ones.
        """
        last = self.floor(offset)
        assert last is not None
        last.find(offset)  # raises while all segments are there, if the place to cut is damaged
        self.drop([segment for segment in self._segments if segment.base_offset > offset])
        # Before the truncation: if the dropped segments came back after a crash, there would be a
        # hole.
        self.sync_names()
        self.active.truncate_to(offset)
        for handle in self.active.to_sync():
            handle.sync()

    def drop(self, segments: list[Segment]) -> None:
        """Drop some segments, but not all. A crash may bring them back until names are synced."""
        self._remove(segments)
        self.replace(segments, [])

    def sync_names(self) -> None:
        self._files.sync_dir(self.directory)

    def restart_at(self, offset: int, now_ms: int) -> None:
        """Drop every segment and begin at `offset`."""
        old = list(self._segments)
        self._remove(old)
        self.begin(old, offset, now_ms)
        self.sync_names()

    def _remove(self, segments: list[Segment]) -> None:
        # Last segment first: wherever a crash stops this, the rest has no hole. Only renamed here:
        # the file system may take long over large files, and there may be hundreds.
        for segment in reversed(segments):
            self._remove_later(segment.rename_deleted(), 0)

    def move(self, directory: Path, *, for_good: bool = False) -> None:
        """Rename the directory; `for_good` when the log is deleted."""
        for segment in self._segments:
            segment.release(trim=not for_good)  # the indexes know their old paths
        with self.home.in_use:
            self._files.rename(self.directory, directory)
            self.home.directory = directory
            self.home.is_gone = for_good
        for segment in self._segments:
            segment.directory = directory
