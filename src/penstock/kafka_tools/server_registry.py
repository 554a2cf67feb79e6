"""Records the servers that start scripts started, so that stop scripts stop only these."""

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

RUN_DIR = "PENSTOCK_RUN_DIR"


class StartedServer(msgspec.Struct, frozen=True):
    """A broker, by its data directory, or a ZooKeeper, by its process."""

    kind: str
    directory: str
    pid: int = 0
    began: str = ""


def registry() -> Path:
    """The registry folder; each user of this machine has one."""
    given = os.environ.get(RUN_DIR)
    if given:
        return Path(given)
    user = os.environ.get("XDG_RUNTIME_DIR")
    if user and os.access(user, os.W_OK):
        return Path(user, "penstock")
    return Path("/tmp", f"penstock-{os.getuid()}")  # noqa: S108  only paths and pids, checked


def remember(server: StartedServer) -> None:
    folder = registry()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _path(server).write_bytes(msgspec.json.encode(server))


def forget(server: StartedServer) -> None:
    _path(server).unlink(missing_ok=True)


def started(kind: str) -> Iterator[StartedServer]:
    folder = registry()
    if not folder.is_dir() or folder.stat().st_uid != os.getuid():
        return
    for path in sorted(folder.glob(f"{kind}-*.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=StartedServer)
        except (msgspec.DecodeError, UnicodeDecodeError, OSError):
            continue


def _path(server: StartedServer) -> Path:
    from hashlib import sha256

    name = sha256(server.directory.encode()).hexdigest()[:16]
    return registry() / f"{server.kind}-{name}.json"
