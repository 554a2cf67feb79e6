"""The audit log: who changed what through the console, and the result."""

import logging
from collections import deque
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from penstock.clock import Clock
from penstock.errors import ConfigError

KEPT: Final = 1000
MOST_CHARACTERS: Final = 2000
"""The limit for each logged field and for the result."""
MOST_FIELDS: Final = 50
SECRETS: Final = ("password", "secret", "token", "sasl.jaas.config", "key.pem")

logger = logging.getLogger(__name__)


class AuditLine(Struct, frozen=True):
    """An attempted change; `result` is ok, or the error message."""

    at_ms: int
    user: str
    address: str
    change: str
    given: dict[str, Any]
    result: str


class Audit:
    """Keeps the last changes in memory and appends each to the file, if there is one, as
    a JSON line.
    """

    def __init__(self, file: Path | None, clock: Clock) -> None:
        self._file, self._clock = file, clock
        self.lines: deque[AuditLine] = deque(maxlen=KEPT)
        self.check()  # fail at start-up rather than at the first change

    def check(self) -> None:
        """Raises if the audit file cannot be written. Called before a change: an unaudited change
        is not made.
        """
        if self._file is not None:
            self._append(b"")

    def add(
        self, user: str, address: str, change: str, given: Mapping[str, Any], result: str
    ) -> None:
        kept = cut(redacted(given))
        line = AuditLine(self._clock.now_ms(), user, address, change, kept, cut_text(result))
        self.lines.append(line)
        text = msgspec.json.encode(line)
        logger.info("audit %s", text.decode())
        if self._file is None:
            return
        try:
            self._append(text + b"\n")
        # the change is done already: the caller must still get its result
        except ConfigError as error:
            logger.error("%s; it lacks %s", error, text.decode())

    def _append(self, text: bytes) -> None:
        assert self._file is not None
        try:
            with self._file.open("ab") as file:
                file.write(text)
        except OSError as error:
            raise ConfigError(f"audit log {self._file}: {error.strerror}") from None


def redacted(given: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with the values of secret fields replaced, at any depth. Fields are secret by name."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            found[name] = redacted(value)
        elif any(each in name.lower() for each in SECRETS):
            found[name] = "***"
        else:
            found[name] = value
    return found


def cut(given: Mapping[str, Any]) -> dict[str, Any]:
    """A shortened copy: a request may have a megabyte, and the console keeps many lines."""
    found: dict[str, Any] = {}
    for name, value in islice(given.items(), MOST_FIELDS):
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        found[cut_text(name)] = value if len(text) <= MOST_CHARACTERS else cut_text(text)
    return found


def cut_text(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}… ({len(text)} characters)"
