"""The log of a server: lines in Kafka's format, or JSON lines."""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

from penstock.cli.frame.visible import visible
from penstock.errors import ConfigError

STATE_CHANGE = "penstock.state_change"
"""The logger of leadership changes, like Kafka's state.change.logger."""
STATE_CHANGE_FILE = "state-change.log"
MAX_BYTES, BACKUP_FILES = 64 << 20, 8

PLAIN = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


class PlainLines(logging.Formatter):
    """One line per message. Clients choose names of groups and topics that appear in messages, so
    control characters are escaped: a name must not look like another line or control a terminal.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the library's name
        record.message = visible(record.message)
        return super().formatMessage(record)


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def __init__(self, process: str | None = None) -> None:
        super().__init__()
        self._process = {} if process is None else {"process": process}

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            **self._process,
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logging(
    level: str, style: str, file: Path | None = None, *, process: str | None = None
) -> None:
    """Log to standard error, or to a rotated file with leadership changes in a file beside it.

    With several processes, each adds its name to its lines and has its own files, because two
    processes cannot rotate the same file.
    """
    logging.raiseExceptions = False  # a full disk must not fill the terminal with tracebacks
    plain = (
        PLAIN if process is None else PLAIN.replace("%(levelname)s", f"%(levelname)s {process}:")
    )
    formatter = JsonLines(process) if style == "json" else PlainLines(plain)
    handler: logging.Handler
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = RotatedFile(own_file(file, process))
        moves = RotatedFile(own_file(file.with_name(STATE_CHANGE_FILE), process))
        moves.setFormatter(formatter)
        state_change = logging.getLogger(STATE_CHANGE)
        state_change.handlers.clear()
        state_change.addHandler(moves)
        state_change.propagate = False
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def own_file(file: Path, process: str | None) -> Path:
    """The log file of a process: `penstock.log` becomes `penstock-worker-1.log` for worker 1."""
    if process is None:
        return file
    return file.with_stem(f"{file.stem}-{process.replace(' ', '-')}")


class RotatedFile(RotatingFileHandler):
    """Keeps a few files of bounded size. If standard error goes to the same file, as with `serve
    --daemon`, it is redirected after each rotation.
    """

    def __init__(self, path: Path) -> None:
        try:
            super().__init__(path, maxBytes=MAX_BYTES, backupCount=BACKUP_FILES, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--log-file {path}: {error.strerror}") from None

    def doRollover(self) -> None:  # noqa: N802  the standard library's name
        shared = self._is_stderr()
        super().doRollover()
        if shared and self.stream is not None:
            os.dup2(self.stream.fileno(), 2)

    def _is_stderr(self) -> bool:
        try:
            return self.stream is not None and os.path.samestat(
                os.fstat(2), os.fstat(self.stream.fileno())
            )
        except OSError:
            return False
