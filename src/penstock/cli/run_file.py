"""`.penstock/run.json` in a project: the process that runs it, and its last progress."""

from pathlib import Path

import msgspec

from penstock.local.process import StartedProcess
from penstock.spark.pipeline.progress import BatchProgress

FILE = Path(".penstock", "run.json")


class RunState(msgspec.Struct, frozen=True):
    """A run. The file stays after the end, with the last progress."""

    process: StartedProcess
    master: str
    started_ms: int
    progress: dict[str, BatchProgress] = {}
    bootstrap: str | None = None
    ended_ms: int | None = None
    """When the run ended, with or without an error; None if it runs or was killed."""
    error: str | None = None


def read_run(project: Path) -> RunState | None:
    try:
        return msgspec.json.decode((project / FILE).read_bytes(), type=RunState)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def write_run(project: Path, state: RunState) -> None:
    path = project / FILE
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(state))
    new.replace(path)
