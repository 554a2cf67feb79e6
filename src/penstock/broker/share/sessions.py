"""Share sessions: the partitions that a member fetches from this broker, across requests."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.broker.share.errors import (
    InvalidShareRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from penstock.types import TopicIdPartition

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1


class ShareSessionKey(NamedTuple):
    """The member of a group."""

    group: str
    member: str


class ShareSession:
    """The partitions that a member fetches, in the order in which to read them."""

    def __init__(self, key: ShareSessionKey, connection: int) -> None:
        self.key, self.connection = key, connection
        self.epoch = 1
        """The epoch of the next request."""
        self.partitions: dict[TopicIdPartition, None] = {}

    def next(self) -> None:
        self.epoch = 1 if self.epoch >= LAST_EPOCH else self.epoch + 1

    def in_rotation(self) -> list[TopicIdPartition]:
        """The partitions to read now. The next request begins with another one, so that none
        starves.
        """
        now = list(self.partitions)
        if len(now) > 1:
            self.partitions[now[0]] = self.partitions.pop(now[0])
        return now


class ShareSessions:
    """The sessions of this broker. Belongs to the event loop."""

    def __init__(self) -> None:
        self._by_key: dict[ShareSessionKey, ShareSession] = {}
        self._by_connection: dict[int, set[ShareSessionKey]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: ShareSessionKey, epoch: int) -> ShareSession:
        """The session of a request that does not open one; advances the session epoch."""
        found = self._by_key.get(key)
        if found is None:
            raise ShareSessionNotFound("The share session was not found.")
        if epoch == FINAL_EPOCH:
            return found
        if epoch != found.epoch:
            raise InvalidShareSessionEpoch("The share session epoch is invalid.")
        found.next()
        return found

    def open(
        self,
        key: ShareSessionKey,
        connection: int,
        *,
        acknowledges: bool,
        most: int,
    ) -> tuple[ShareSession, ShareSession | None]:
        """A new session, and the session of the same member that it replaces."""
        if acknowledges:
            raise InvalidShareRequest("A first request of a session cannot acknowledge records.")
        replaced = self.close(key)
        if len(self._by_key) >= most:
            raise ShareSessionLimitReached("The limit of share sessions has been reached.")
        session = self._by_key[key] = ShareSession(key, connection)
        self._by_connection.setdefault(connection, set()).add(key)
        return session, replaced

    def close(self, key: ShareSessionKey) -> ShareSession | None:
        session = self._by_key.pop(key, None)
        if session is not None:
            keys = self._by_connection[session.connection]
            keys.discard(key)
            if not keys:
                del self._by_connection[session.connection]
        return session

    def partition_count(self, key: ShareSessionKey) -> int:
        """Partitions in the member's session."""
        found = self._by_key.get(key)
        return 0 if found is None else len(found.partitions)

    def is_open(self, session: ShareSession) -> bool:
        return self._by_key.get(session.key) is session

    def of_connection(self, connection: int) -> list[ShareSessionKey]:
        return list(self._by_connection.get(connection, ()))

    def has_group(self, group: str) -> bool:
        return any(key.group == group for key in self._by_key)


def changed(
    session: ShareSession, named: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
) -> list[TopicIdPartition]:
    """Add partitions to the session and remove others; returns the added ones."""
    added = [each for each in named if each not in session.partitions]
    session.partitions.update(dict.fromkeys(added))
    for each in forgotten:
        session.partitions.pop(each, None)
    return added
