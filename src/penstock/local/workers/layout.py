"""`workers.json` in the data directory: the number of workers for which its logs are laid out.

With one worker the partitions are in the log directories themselves, as in Kafka. With several,
each worker has a folder in every log directory, `worker.0`, `worker.1` and so on, which Kafka can
read one by one.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from penstock.errors import ConfigError
from penstock.local.format_version import refuse_newer
from penstock.log.files import Files, replace

FILE_NAME = "workers.json"
VERSION = 1
PREFIX = "worker."


class Move(msgspec.Struct, frozen=True):
    """A replica that moves from one worker to another."""

    topic: str
    partition: int
    source: int
    target: int


class Resize(msgspec.Struct, frozen=True):
    """A change of the number of workers that has begun. The next start completes it first."""

    workers: int
    broker_ids: tuple[int, ...]
    """Broker ids of the workers before and after, by index; empty if ZooKeeper assigns them."""
    moves: tuple[Move, ...] = ()


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file."""

    version: int = VERSION
    workers: Annotated[int, msgspec.Meta(ge=1)] = 1
    resize: Resize | None = None


def folder(log_dir: Path, worker: int) -> Path:
    return log_dir / f"{PREFIX}{worker}"


def folders(log_dirs: Iterable[Path], workers: int) -> list[list[Path]]:
    """The folders of each worker."""
    dirs = list(log_dirs)
    return [[folder(each, worker) for each in dirs] for worker in range(workers)]


def read_layout(directory: Path) -> Layout:
    """The layout; that of one worker if there is no file."""
    path = directory / FILE_NAME
    try:
        data = path.read_bytes()
        refuse_newer(data, path, VERSION)
        layout = msgspec.json.decode(data, type=Layout)
    except (FileNotFoundError, NotADirectoryError):
        return Layout()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} is damaged ({error}): restore it, or write "
            f'{{"workers": N}} there, with the number of {PREFIX}0, {PREFIX}1, … in log.dirs; if '
            "there is none of them, delete it"
        ) from None
    return layout


def write_layout(files: Files, directory: Path, layout: Layout) -> None:
    """Write the layout; it is durable on return."""
    replace(files, directory / FILE_NAME, msgspec.json.format(msgspec.json.encode(layout)))


def adopt_layout(files: Files, directory: Path, folders: Iterable[Path]) -> list[Path]:
    """The log directories of the workers' folders; there are at least two folders.

    If `workers.json` is lost or has only one worker, it is rewritten, also for workers whose
    folders were not named.
    """
    log_dirs = list(dict.fromkeys(each.parent for each in folders))
    layout = read_layout(directory)
    if layout.workers == 1 and layout.resize is None:
        indexes = [
            int(number)
            for log_dir in log_dirs
            for name in files.names(log_dir)
            if (number := name.removeprefix(PREFIX)) != name and number.isdecimal()
        ]
        write_layout(files, directory, Layout(workers=max([1, *indexes]) + 1))
    return log_dirs
