"""The error of a damaged file beside the records."""

from penstock.errors import StorageError


class CorruptFile(StorageError):
    """A file beside the records is damaged: recovery rebuilds it from the log.

    Where nothing can rebuild it, it is a `StorageError`: the directory goes offline.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what, self.why = what, why
