"""`service.json` in the folder of a delay service: the address of its metrics."""

import os
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = "service.json"


class ServiceAddress(msgspec.Struct, frozen=True):
    """A running delay service: its process and its HTTP address."""

    pid: int
    http: str


def write_address(folder: Path, http: str) -> None:
    new = folder / f"{FILE}.new"
    new.write_bytes(msgspec.json.encode(ServiceAddress(os.getpid(), http)))
    new.replace(folder / FILE)


def read_address(folder: Path) -> str | None:
    """None: no service runs there."""
    try:
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=ServiceAddress)
        os.kill(found.pid, 0)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found.http
