"""The key of a broker's session, stored beside its data.

A killed broker leaves its session behind, and with it a registration that blocks its own restart
until the session expires. With the key, the broker ends that session when it starts. So the key is
on disk before anything is registered under it.
"""

import logging
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.metadata.zookeeper.session import SessionKey

FILE_NAME = "zookeeper-session.json"
VERSION = 1

logger = logging.getLogger(__name__)


class _StoredKey(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content. `directory` tells the data from a copy of it: a live broker's session
    must not end because its directory was copied and started elsewhere.
    """

    version: int
    session_id: int
    password: bytes
    directory: tuple[int, int]


class SessionFile:
    """A file in a log directory that this process has locked. Its errors do not stop a broker:
    without the key, a restart only takes longer.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._last: SessionKey | None = None

    def write(self, key: SessionKey) -> None:
        """Written atomically, readable by the owner alone: the key gives access to the session."""
        if key == self._last:
            return
        try:
            stored = _StoredKey(
                version=VERSION,
                session_id=key.id,
                password=key.password,
                directory=self._directory(),
            )
            part = self._path.with_suffix(".tmp")
            part.unlink(missing_ok=True)
            part.touch(mode=0o600)
            part.write_bytes(msgspec.json.encode(stored))
            part.replace(self._path)
        except OSError as error:
            logger.warning(
                "%s: %s; the next restart may have to wait for the session to expire",
                self._path,
                error,
            )
        else:
            self._last = key

    def read(self) -> SessionKey | None:
        """The key of the former process."""
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=_StoredKey)
            if stored.version == VERSION and stored.directory == self._directory():
                return SessionKey(stored.session_id, stored.password)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            logger.warning("%s: %s; ignoring the file", self._path, error)
        return None

    def delete(self) -> None:
        self._last = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _directory(self) -> tuple[int, int]:
        found = self._path.parent.stat()
        return found.st_dev, found.st_ino
