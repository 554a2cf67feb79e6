"""A follower's side of fetch sessions (KIP-227): only changes go over the wire. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION = 0
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1

LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
"""The leader has no such session any more: all is told again, in a new one."""


class Asked(Struct, frozen=True):
    """What a follower wants of one partition."""

    topic_id: Uuid
    fetch: FetchPartition


class Told(Struct, frozen=True):
    """The part of a request that a session decides."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FollowerSession:
    """What the leader at the other end of a connection knows of the follower's wishes."""

    def __init__(self) -> None:
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        self._known: dict[TopicPartition, Asked] = {}

    def next(self, wanted: Mapping[TopicPartition, Asked]) -> Told:
        """The request that makes the leader fetch just `wanted`."""
        known = self._known if self._epoch != INITIAL_EPOCH else {}
        gone = [
            (where, asked.topic_id)
            for where, asked in known.items()
            if where not in wanted or wanted[where].topic_id != asked.topic_id
        ]
        news = [
            (where, asked)
            for where, asked in wanted.items()
            if (before := known.get(where)) is not asked and before != asked
        ]
        self._known = dict(wanted)
        return Told(self._id, self._epoch, _topics(news), _forgotten(gone))

    def answered(self, session_id: int) -> None:
        """The leader answered, and named the session that there is now, if it has room for one."""
        if session_id == NO_SESSION:
            self.lost()
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def lost(self) -> None:
        """Nobody knows what the leader knows: begin anew."""
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH


def _topics(asked: Iterable[tuple[TopicPartition, Asked]]) -> list[FetchTopic]:
    by_topic: dict[tuple[str, Uuid], list[FetchPartition]] = {}
    for where, each in asked:
        by_topic.setdefault((where.topic, each.topic_id), []).append(each.fetch)
    return [
        FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]


def _forgotten(gone: Iterable[tuple[TopicPartition, Uuid]]) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, Uuid], list[int]] = {}
    for where, topic_id in gone:
        by_topic.setdefault((where.topic, topic_id), []).append(where.partition)
    return [
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]
