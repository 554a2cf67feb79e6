"""The key of the session that a broker holds, kept beside its data.

A broker that was killed leaves its session behind, and with it a registration that is in its own
way until ZooKeeper has waited long enough. With the key it ends that session when it starts.
"""

import logging
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.metadata.zookeeper.session import SessionKey

FILE_NAME = "zookeeper-session.json"
VERSION = 1

logger = logging.getLogger(__name__)


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """What the file holds. `directory` tells a copy of the data from the data: the session of a
    broker that lives must not end because its directory was copied and started elsewhere.
    """

    version: int
    session_id: int
    password: bytes
    directory: tuple[int, int]


class SessionFile:
    """One file in a log directory that this process has locked. No error of it stops a broker:
    without the key, a restart only takes longer.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._last: SessionKey | None = None

    def remember(self, key: SessionKey) -> None:
        """Atomically; readable by the owner alone, as who has the key has the session."""
        if key == self._last:
            return
        try:
            held = _Held(
                version=VERSION,
                session_id=key.id,
                password=key.password,
                directory=self._directory(),
            )
            part = self._path.with_suffix(".tmp")
            part.unlink(missing_ok=True)
            part.touch(mode=0o600)
            part.write_bytes(msgspec.json.encode(held))
            part.replace(self._path)
        except OSError as error:
            logger.warning("%s: %s; a restart may have to wait", self._path, error)
        else:
            self._last = key

    def recalled(self) -> SessionKey | None:
        """The key that a former process left here."""
        try:
            held = msgspec.json.decode(self._path.read_bytes(), type=_Held)
            if held.version == VERSION and held.directory == self._directory():
                return SessionKey(held.session_id, held.password)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("%s: %s; passed over", self._path, error)
        return None

    def forget(self) -> None:
        self._last = None
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _directory(self) -> tuple[int, int]:
        found = self._path.parent.stat()
        return found.st_dev, found.st_ino
