"""`broker.json` in the data directory: who serves there, for those who want to find it."""

import os
from pathlib import Path

import msgspec

FILE_NAME = "broker.json"


class BrokerState(msgspec.Struct, frozen=True):
    """A running broker: its process, the addresses it tells clients, its HTTP server's."""

    pid: int
    broker_id: int
    cluster_id: str
    bootstrap: str
    listeners: dict[str, str]
    http: str | None = None


def read_state(directory: Path) -> BrokerState | None:
    """None when nobody serves there; a file that a kill left behind counts as nobody."""
    try:
        state = msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=BrokerState)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    try:
        os.kill(state.pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it runs, as somebody else
    return state


def write_state(directory: Path, state: BrokerState) -> None:
    text = msgspec.json.format(msgspec.json.encode(state))
    new = directory / f"{FILE_NAME}.new"
    new.write_bytes(text)
    new.replace(directory / FILE_NAME)


def remove_state(directory: Path) -> None:
    (directory / FILE_NAME).unlink(missing_ok=True)
