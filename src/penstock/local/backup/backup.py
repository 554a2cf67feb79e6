"""Copies a single node's metadata and logs, as of one moment, while it runs."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from penstock import __version__
from penstock.broker.startup.known_log_dirs import PATH, log_dirs_in
from penstock.broker.startup.state_file import hold_directory, is_held, read_state, unfound_broker
from penstock.clock import Clock
from penstock.errors import ConfigError
from penstock.local.backup import manifest as manifests
from penstock.local.backup.image import ImageFile, image_of, raise_file_limit
from penstock.local.backup.manifest import LOGS, METADATA, BackupFile, Manifest
from penstock.local.backup.pause import paused
from penstock.local.workers.layout import FILE_NAME as LAYOUT
from penstock.local.workers.layout import PREFIX, read_layout
from penstock.metadata.backup import export_lines, saved_node
from penstock.metadata.tree import FILE_NAME as STORE
from penstock.record.crc import crc32c


class BackupSummary(Struct, frozen=True):
    """What was copied, and how long the broker was paused."""

    files: int
    size_bytes: int
    paused_ms: int


def back_up(directory: Path, target: Path, clock: Clock) -> BackupSummary:
    """Copy the metadata and logs of a data directory into a new or empty folder."""
    if not (directory / STORE).exists():
        raise ConfigError(
            f"{directory / STORE} is not there: a backup is of a single node, by its data "
            "directory; a broker on ZooKeeper has its replicas for that"
        )
    if target.resolve().is_relative_to(directory.resolve()):
        raise ConfigError(f"{target} is in the data directory {directory}: name a folder elsewhere")
    new_folder(target)
    with ExitStack() as closes:
        raise_file_limit()
        with _still(directory) as is_running:
            began, made_ms = time.monotonic(), clock.now_ms()
            lines = list(export_lines(directory / STORE))
            log_dirs = _log_dirs(lines, directory)
            _refuse_within(log_dirs, target)
            image = [closes.enter_context(closing(each)) for each in _image(log_dirs)]
            layout = directory / LAYOUT
            if layout.exists():
                data = layout.read_bytes()
                image.append(ImageFile(LAYOUT, len(data), data))
            paused_ms = round((time.monotonic() - began) * 1000) if is_running else 0
        data = b"".join(line + b"\n" for line in lines)
        image.append(ImageFile(METADATA, len(data), data))
        files = tuple(_copied(each, target) for each in image)
    made = Manifest(
        penstock=__version__, made_ms=made_ms, log_dirs=tuple(map(str, log_dirs)), files=files
    )
    for folder in {target / parent for each in files for parent in Path(each.path).parents}:
        sync_folder(folder)
    write_file(target / f"{manifests.FILE_NAME}.new", [msgspec.json.encode(made)])
    (target / f"{manifests.FILE_NAME}.new").replace(target / manifests.FILE_NAME)
    sync_folder(target)
    return BackupSummary(len(files), made.size_bytes, paused_ms)


@contextmanager
def _still(directory: Path) -> Iterator[bool]:
    """Prevent changes during the block; yields whether a broker runs there and is paused."""
    if not is_held(directory):
        release = hold_directory(directory)
        try:
            yield False
        finally:
            release()
        return
    state = read_state(directory)
    if state is None:
        raise ConfigError(unfound_broker(directory))
    with paused(state):
        yield True


def _log_dirs(lines: Sequence[bytes], directory: Path) -> Mapping[Path, list[Path]]:
    """The log directories in the metadata; with workers, the folders inside each."""
    nodes = (saved_node(line).node for line in lines[1:])
    stored = next((each for each in nodes if each.path == PATH), None)
    known = log_dirs_in(stored).values() if stored else ()
    if not known:
        raise ConfigError(f"{directory}: no broker has been started there, so it has no logs")
    layout = read_layout(directory)
    if layout.resize is not None:
        raise ConfigError(
            f"{directory}: a change of the number of workers has begun: start the broker once"
        )
    found: dict[Path, list[Path]] = {}
    for each in map(Path, sorted(known)):
        root = each.parent if layout.workers > 1 and each.name.startswith(PREFIX) else each
        found.setdefault(root, []).append(each)
    return found


def _refuse_within(log_dirs: Iterable[Path], target: Path) -> None:
    """Refuse a target inside of a log directory: a folder such as `monday-1` would look
    like a partition.
    """
    for each in log_dirs:
        if target.resolve().is_relative_to(each.resolve()):
            target.rmdir()
            raise ConfigError(f"{target} is in the log directory {each}: name a folder elsewhere")


def _image(log_dirs: Mapping[Path, list[Path]]) -> Iterator[ImageFile]:
    for number, (root, folders) in enumerate(log_dirs.items()):
        for folder in folders:
            inside = folder.relative_to(root).as_posix()
            prefix = f"{LOGS}/{number}" + ("" if inside == "." else f"/{inside}")
            yield from image_of(folder, prefix)


def _copied(file: ImageFile, target: Path) -> BackupFile:
    checksum = 0

    def summed() -> Iterator[bytes]:
        nonlocal checksum
        for data in file.chunks():
            checksum = crc32c(data, checksum)
            yield data

    write_file(target / file.path, summed())
    return BackupFile(file.path, file.size_bytes, checksum)


def new_folder(path: Path, option: str = "") -> None:
    """Create an empty folder that only its owner can read, because the metadata has credentials of
    users.

    `option` says in the error message how to name another folder.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise ConfigError(f"{path} is not empty: name a new folder{option}")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def write_file(path: Path, chunks: "Sequence[bytes] | Iterator[bytes]") -> None:
    """Write a file durably, except for its directory entry."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
