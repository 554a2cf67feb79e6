"""A handler for other processes: a module-level function, since it is pickled by name."""

import os
from pathlib import Path

from penstock.sdk.record import Record


def handle(record: Record[bytes, bytes]) -> None:
    """Creates a file named after value and process in the directory that the key names."""
    assert record.key is not None
    assert record.value is not None
    Path(record.key.decode(), f"{record.value.decode()}-{os.getpid()}").touch()
