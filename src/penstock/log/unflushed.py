"""Changes that the next flush of a log has to sync besides its segments."""

from penstock.log.epochs import LeaderEpochs


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

    def take(self, epochs: LeaderEpochs) -> tuple[tuple[str, ...], bool, bytes | None]:
        """File names, whether to sync the directory, and the epochs if they changed."""
        taken = (
            tuple(sorted(self._names)),
            self.names_changed,
            epochs.encode() if self.epochs_changed else None,
        )
        self._in_flight, self._names = self._names, set()
        self.names_changed = self.epochs_changed = self.is_urgent = False
        return taken

    def give_back(self) -> None:
        """The flush failed: the next one has to sync everything that it took."""
        self._names |= self._in_flight
        self.names_changed = self.epochs_changed = self.is_urgent = True
