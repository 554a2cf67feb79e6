"""`broker.json` in the data directory: the process and addresses of the broker that runs there."""

import fcntl
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import msgspec

from penstock.errors import ConfigError
from penstock.log.disk import DiskFiles
from penstock.log.files import DirectoryLocked
from penstock.process_start import process_start

FILE_NAME = "broker.json"
LOCK_NAME = "broker.lock"
ORPHANED_S, LOOKED_S, POLL_S = 15.0, 0.3, 0.02


class WorkerState(msgspec.Struct, frozen=True):
    """One of several brokers of a machine; its process is the supervisor's child."""

    index: int
    pid: int
    broker_id: int
    listeners: dict[str, str]
    http: str | None = None
    restarts: int = 0

    def __hash__(self) -> int:
        return hash((self.index, self.pid))


class BrokerState(msgspec.Struct, frozen=True):
    """A running broker: its process, its advertised addresses, and its HTTP address."""

    pid: int
    began: str
    """The start time of the process, since the system reuses pids."""
    broker_id: int
    cluster_id: str
    bootstrap: str
    listeners: dict[str, str]
    http: str | None = None
    workers: tuple[WorkerState, ...] = ()
    """For `serve --workers`: the process is then their supervisor, the id is that of the first
    worker, and the addresses are those that all workers share.
    """

    def is_alive(self) -> bool:
        return process_start(self.pid) == self.began


def read_state(directory: Path) -> BrokerState | None:
    """The running broker; None if there is none. A killed broker leaves the file behind."""
    state = _written(directory)
    return state if state is not None and state.is_alive() else None


def was_killed(directory: Path) -> bool:
    """Whether the last broker left its file behind."""
    former = _written(directory)
    return former is not None and not former.is_alive()


def _written(directory: Path) -> BrokerState | None:
    try:
        return msgspec.json.decode((directory / FILE_NAME).read_bytes(), type=BrokerState)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError, UnicodeDecodeError):
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
    began = time.monotonic()
    while True:
        try:
            return DiskFiles().lock(directory / LOCK_NAME)
        except DirectoryLocked:
            if time.monotonic() < began + _release_s(directory):
                time.sleep(POLL_S)
                continue
            state = read_state(directory)
            if state is None:
                raise ConfigError(f"--dir {unfound_broker(directory)}") from None
            raise ConfigError(
                f"--dir {directory} is in use: a broker (pid {state.pid}) runs there at "
                f"{state.bootstrap}; stop it with `penstock stop --dir {quote(str(directory))}`, "
                "or use another directory"
            ) from None


def _release_s(directory: Path) -> float:
    """How long the lock may still be held without a broker. Workers hold it too, and stop by
    themselves after their supervisor was killed. `is_held` takes it for a moment.
    """
    former = _written(directory)
    if former is None:
        return LOOKED_S
    if former.is_alive():
        return 0.0
    return ORPHANED_S if former.workers else LOOKED_S


def is_held(directory: Path) -> bool:
    """Whether a broker holds the directory. Needs read permission only; callers do not block each
    other.
    """
    try:
        with (directory / LOCK_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False


def unfound_broker(directory: Path) -> str:
    """Why `read_state` finds no broker, and what to do: the lock shows whether one is alive."""
    if not is_held(directory):
        return f"{directory}: no broker runs here"
    pid = _lock_holder(directory)
    who = "a broker" if pid is None else f"a broker (pid {pid})"
    stop = "stop it where it was started" if pid is None else f"stop it with `kill {pid}`"
    if not (directory / FILE_NAME).is_file():
        return f"{directory}: {who} holds {LOCK_NAME} and is not ready yet: wait for it, or {stop}"
    if _written(directory) is None:
        return (
            f"{directory}: {who} runs here, but {FILE_NAME} is damaged and does not say where it "
            f"listens: {stop}, and start it again"
        )
    if pid is None:
        stop = "it runs in another container, or starts just now; stop it there"
    return f"{directory}: {who} holds {LOCK_NAME}, but {FILE_NAME} is that of another: {stop}"


def _lock_holder(directory: Path) -> int | None:
    """The pid of the lock's holder; None in another container, or if the system does not tell."""
    if sys.platform != "linux":
        return None  # the structure below has another layout on other systems
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
    with (directory / LOCK_NAME).open("rb") as file:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    kind, _, _, _, pid = struct.unpack("hhqqi", answer)
    return pid if kind != fcntl.F_UNLCK and pid > 0 else None
