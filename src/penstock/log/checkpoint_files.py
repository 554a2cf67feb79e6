"""The checkpoint files of a log directory: an offset for each of its partitions."""

import logging
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from threading import Lock

from penstock.log import checkpoint
from penstock.log.corrupt import CorruptFile
from penstock.log.files import Files
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)


class CheckpointFiles:
    """Reads and writes checkpoint files by name. A function that writes may run on any thread."""

    def __init__(self, files: Files, directory: Path) -> None:
        self._files, self._directory = files, directory
        self._writing = Lock()
        self._tickets = count(1)
        self._written: dict[str, int] = {}

    def read(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint file; none if it is missing or damaged."""
        try:
            return checkpoint.read_offsets(self._files, self._directory / name)
        except CorruptFile as error:
            logger.warning("%s; it is ignored", error)
            return {}

    def writer(self, name: str, offsets: Mapping[TopicPartition, int]) -> Callable[[], None]:
        """A function that writes a checkpoint file, on any thread.

        It does nothing once a later one has written: a recovery point that was lowered on one
        thread must not be raised again by a function that has waited on another.
        """
        ticket = next(self._tickets)

        def write() -> None:
            with self._writing:
                if ticket > self._written.get(name, 0):
                    checkpoint.write_offsets(self._files, self._directory / name, offsets)
                    self._written[name] = ticket

        return write
