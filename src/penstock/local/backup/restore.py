"""Restores a backup into an empty data directory. The metadata is restored last.

Until then a start refuses the directory, because a placeholder that is not a database stands for
the metadata.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from penstock.broker.startup.known_log_dirs import read_known_log_dirs, write_known_log_dirs
from penstock.broker.startup.state_file import hold_directory
from penstock.clock import Clock
from penstock.errors import ConfigError, StorageError
from penstock.local.backup.backup import new_folder, sync_folder, write_file
from penstock.local.backup.image import CHUNK
from penstock.local.backup.manifest import LOGS, METADATA, BackupFile, Manifest, read_manifest
from penstock.metadata.backup import import_lines
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.tree import FILE_NAME as STORE
from penstock.metadata.tree import Tree
from penstock.record.crc import crc32c

UNFINISHED = b"A restore into this directory began and did not end: delete it and restore again.\n"
"""The metadata's placeholder, which keeps a broker from starting, with any log directories."""


def verify(backup: Path) -> Manifest:
    """Read every file of a backup, and compare it with the manifest."""
    manifest = read_manifest(backup)
    for each in manifest.files:
        for _ in _checked(backup, each):
            pass
    return manifest


def restore(backup: Path, directory: Path, log_dirs: Sequence[Path], clock: Clock) -> Manifest:
    """Restore into a data directory and log directories that are new or empty.

    `log_dirs` has as many as the broker had, in the same order; empty: `logs` in the data
    directory.
    """
    manifest = read_manifest(backup)
    targets = [each.absolute() for each in log_dirs] or default_log_dirs(manifest, directory)
    if len(targets) != len(manifest.log_dirs):
        raise ConfigError(
            f"--log-dirs names {len(targets)} directories; the broker had "
            f"{len(manifest.log_dirs)}: {','.join(manifest.log_dirs)}"
        )
    if len(set(targets)) != len(targets):
        raise ConfigError(f"--log-dirs names a directory twice: {','.join(map(str, targets))}")
    new_folder(directory, " by --dir, or move this one away")
    for path in targets:
        new_folder(path, " by --log-dirs, or move this one away")
    # otherwise a starting broker could create its own metadata meanwhile
    release = hold_directory(directory)
    try:
        write_file(directory / STORE, [UNFINISHED])
        _restore_logs(backup, manifest, directory, targets)
        _restore_metadata(backup, manifest, directory, targets, clock)
    finally:
        release()
    return manifest


def _restore_logs(
    backup: Path, manifest: Manifest, directory: Path, log_dirs: Sequence[Path]
) -> None:
    folders = set()
    for each in manifest.files:
        if each.path != METADATA:
            target = _target(each.path, directory, log_dirs)
            write_file(target, _checked(backup, each))
            folders |= {target.parent, target.parent.parent}
    for folder in folders:
        sync_folder(folder)


def default_log_dirs(manifest: Manifest, directory: Path) -> list[Path]:
    if len(manifest.log_dirs) == 1:
        return [directory.absolute() / LOGS]
    return [directory.absolute() / f"{LOGS}-{each}" for each in range(len(manifest.log_dirs))]


def _target(path: str, directory: Path, log_dirs: Sequence[Path]) -> Path:
    first, *rest = Path(path).parts
    if first != LOGS:
        return directory / path
    number, *inside = rest
    return log_dirs[int(number)].joinpath(*inside)


def _checked(backup: Path, expected: BackupFile) -> Iterator[bytes]:
    path = backup / expected.path
    checksum, size_bytes = 0, 0
    try:
        with path.open("rb") as file:
            while data := file.read(CHUNK):
                checksum, size_bytes = crc32c(data, checksum), size_bytes + len(data)
                yield data
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if (size_bytes, checksum) != (expected.size_bytes, expected.crc32c):
        raise ConfigError(f"{path} is damaged: it is not what the backup's manifest says")


def _restore_metadata(
    backup: Path, manifest: Manifest, directory: Path, log_dirs: Sequence[Path], clock: Clock
) -> None:
    files = {each.path: each for each in manifest.files}
    lines = b"".join(_checked(backup, files[METADATA])).splitlines()
    store = directory / f"{STORE}.new"
    import_lines(store, lines, clock)
    asyncio.run(_rename_log_dirs(store, manifest.log_dirs, log_dirs, clock))
    log = store.with_name(f"{store.name}-wal")
    if log.exists() and log.stat().st_size:  # SQLite does not report that it could not clear it
        raise StorageError(f"{log} could not be written back to the metadata: is the disk full?")
    for suffix in ("-wal", "-shm", ".lock"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    store.replace(directory / STORE)
    sync_folder(directory)


async def _rename_log_dirs(
    path: Path, former: Sequence[str], new: Sequence[Path], clock: Clock
) -> None:
    """Update the recorded log directories, so that a start that misses one names its new path."""
    with closing(Tree.open(path, clock)) as tree:
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        known = dict(await read_known_log_dirs(store))
        for each, at in known.items():
            for old, target in zip(former, new, strict=True):
                if Path(at).is_relative_to(old):
                    known[each] = str(target / Path(at).relative_to(old))
        await write_known_log_dirs(store, known)
        await store.close()
