"""Changes that the next flush of a log has to sync besides its segments."""

from typing import Final

from penstock.log.epochs import LeaderEpochs
from penstock.log.files import Files
from penstock.log.flush import Flush
from penstock.log.home import Home
from penstock.log.segment import Segment
from penstock.log.segment_files import SEGMENT_FILES

HELD_OPEN: Final = 2
"""The newest segments, whose files a flush holds open from its beginning.

After a recovery, or in a copy that moved to another directory, thousands may have to be synced.
"""


class Unflushed:
    """Notes changes between two flushes; a flush takes them, and a failed one gives them back."""

    def __init__(self, *, changed: bool, is_urgent: bool) -> None:
        self.names_changed = self.epochs_changed = changed
        self.is_urgent = is_urgent
        """A closed segment, or a recovered one, waits for a flush."""
        self._names: set[str] = set()
        """Names of files beside the segments; the files are not held open."""
        self._in_flight: set[str] = set()
        """The names that the running flush has taken."""

    @property
    def is_empty(self) -> bool:
        return not (self.names_changed or self.epochs_changed)

    def add_file(self, name: str) -> None:
        self._names.add(name)
        self.names_changed = True

    def begin_flush(
        self,
        files: Files,
        home: Home,
        segments: list[Segment],
        epochs: LeaderEpochs,
        *,
        end_offset: int,
        generation: int,
    ) -> Flush:
        """The flush that syncs these segments and everything noted since the last one."""
        handles = [handle for segment in segments[-HELD_OPEN:] for handle in segment.to_sync()]
        # All entries of closed segments are written.
        closed = [
            segment.path(suffix).name
            for segment in segments[:-HELD_OPEN]
            for suffix in SEGMENT_FILES
        ]
        flush = Flush(
            files,
            home,
            end_offset,
            generation,
            tuple(handles),
            (*closed, *sorted(self._names)),
            names=self.names_changed,
            epochs=epochs.encode() if self.epochs_changed else None,
        )
        self._in_flight, self._names = self._names, set()
        self.names_changed = self.epochs_changed = self.is_urgent = False
        return flush

    def give_back(self) -> None:
        """The flush failed: the next one has to sync everything that it took."""
        self._names |= self._in_flight
        self.names_changed = self.epochs_changed = self.is_urgent = True
