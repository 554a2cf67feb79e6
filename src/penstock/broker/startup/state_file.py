"""`broker.json` in the data directory: how to find the broker that runs there."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from penstock.broker.startup.process_start import process_start
from penstock.errors import ConfigError
from penstock.log.files import DirectoryLocked, DiskFiles

FILE_NAME = "broker.json"
LOCK_NAME = "broker.lock"


class BrokerState(msgspec.Struct, frozen=True):
    """A running broker: its process, its advertised addresses, and its HTTP address."""

    pid: int
    began: str
    """When the process began, because the system reuses pids."""
    broker_id: int
    cluster_id: str
    bootstrap: str
    listeners: dict[str, str]
    http: str | None = None

    def is_alive(self) -> bool:
        return process_start(self.pid) == self.began


def read_state(directory: Path) -> BrokerState | None:
    """None if no broker runs there; a killed broker leaves the file behind."""
    state = _written(directory)
    return state if state is not None and state.is_alive() else None


def _written(directory: Path) -> BrokerState | None:
    try:
        return msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=BrokerState)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def write_state(directory: Path, state: BrokerState) -> None:
    text = msgspec.json.format(msgspec.json.encode(state))
    new = directory / f"{FILE_NAME}.new"
    new.write_bytes(text)
    new.replace(directory / FILE_NAME)


def remove_state(directory: Path, state: BrokerState) -> None:
    """Remove the file, unless another broker has started there and written its own."""
    if _written(directory) == state:
        (directory / FILE_NAME).unlink(missing_ok=True)


def hold_directory(directory: Path) -> Callable[[], None]:
    """Keep other brokers out of the directory until the returned function is called."""
    try:
        return DiskFiles().lock(directory / LOCK_NAME)
    except DirectoryLocked:
        state = read_state(directory)
        who = "another process" if state is None else f"a broker (pid {state.pid})"
        at = "" if state is None else f" at {state.bootstrap}"
        raise ConfigError(
            f"--dir {directory} is in use: {who} runs there{at}; "
            f"stop it with `penstock stop --dir {directory}`, or use another directory"
        ) from None


def is_held(directory: Path) -> bool:
    try:
        DiskFiles().lock(directory / LOCK_NAME)()
    except DirectoryLocked:
        return True
    return False
