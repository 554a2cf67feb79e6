"""The manifest of a backup. It is written last, so a backup without one is incomplete."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from penstock.errors import ConfigError
from penstock.local.format_version import refuse_newer
from penstock.local.workers.layout import FILE_NAME as LAYOUT

FILE_NAME = "manifest.json"
METADATA = "metadata.jsonl"
LOGS = "logs"
FORMAT = "penstock-backup"
VERSION = 1


class BackupFile(Struct, frozen=True):
    """One file, with its path in the backup."""

    path: str
    size_bytes: Annotated[int, Meta(ge=0)]
    crc32c: int


class Manifest(Struct, frozen=True, kw_only=True):
    """The contents of a backup. `log_dirs` are the broker's original paths, in this order."""

    format: str = FORMAT
    version: int = VERSION
    penstock: str
    made_ms: int
    log_dirs: tuple[str, ...]
    files: tuple[BackupFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.files)


class _Head(Struct, frozen=True):
    format: str


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest; raises for a folder that is not a backup, an incomplete one, or one of
    a newer version.
    """
    path = folder / FILE_NAME
    try:
        data = path.read_bytes()
        head = msgspec.json.decode(data, type=_Head)
        if head.format != FORMAT:
            raise ConfigError(
                f"{path} is not the manifest of a backup: its format is {head.format!r}"
            )
        refuse_newer(data, path, VERSION)
        manifest = msgspec.json.decode(data, type=Manifest)
    except FileNotFoundError:
        raise ConfigError(
            f"{folder} is not a complete backup: it has no {FILE_NAME}, which is written last"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is damaged: {error}") from None
    for each in manifest.files:
        if problem := _problem(each.path, len(manifest.log_dirs)):
            raise ConfigError(f"{path} is damaged: it names {each.path!r}, {problem}")
    if METADATA not in {each.path for each in manifest.files}:
        raise ConfigError(f"{path} is damaged: it names no {METADATA}")
    return manifest


def _problem(path: str, log_dirs: int) -> str | None:
    """Why a path must not be restored. Only paths that `backup` writes are allowed, so that no
    other file gets into a data directory.
    """
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts or "\0" in path:
        return "outside of the backup"
    if path in {METADATA, LAYOUT}:
        return None
    if len(parts) < 3 or parts[0] != LOGS or parts[1] not in map(str, range(log_dirs)):
        return "of no log directory"
    return None
