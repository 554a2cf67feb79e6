"""A follower's side of fetch sessions (KIP-227): requests contain only changes. Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from penstock.errors import ErrorCode
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION = 0
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1

SESSION_LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    }
)
"""The leader has lost the session: the next request starts a new one."""


class PartitionFetch(Struct, frozen=True):
    """A follower's request for one partition."""

    topic_id: Uuid
    request: FetchPartition


class SessionRequest(Struct, frozen=True):
    """The parts of a fetch request that depend on the session."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FollowerSession:
    """The partitions that the leader has in the session of one connection."""

    def __init__(self) -> None:
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        self._known: dict[TopicPartition, PartitionFetch] = {}

    def next(self, wanted: Mapping[TopicPartition, PartitionFetch]) -> SessionRequest:
        """The request that makes the session contain exactly `wanted`."""
        known = self._known if self._epoch != INITIAL_EPOCH else {}
        removed = [
            (topic_partition, fetch.topic_id)
            for topic_partition, fetch in known.items()
            if topic_partition not in wanted or wanted[topic_partition].topic_id != fetch.topic_id
        ]
        changed = [
            (topic_partition, fetch)
            for topic_partition, fetch in wanted.items()
            if (before := known.get(topic_partition)) is not fetch and before != fetch
        ]
        self._known = dict(wanted)
        return SessionRequest(self._id, self._epoch, _topics(changed), _forgotten(removed))

    def answered(self, session_id: int) -> None:
        """Take the session id of the response; `NO_SESSION` if the leader has no room for one."""
        if session_id == NO_SESSION:
            self.reset()
        else:
            self._id = session_id
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1

    def reset(self) -> None:
        """Start over, since the leader's state is unknown."""
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH


def _topics(fetch: Iterable[tuple[TopicPartition, PartitionFetch]]) -> list[FetchTopic]:
    by_topic: dict[tuple[str, Uuid], list[FetchPartition]] = {}
    for topic_partition, each in fetch:
        by_topic.setdefault((topic_partition.topic, each.topic_id), []).append(each.request)
    return [
        FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]


def _forgotten(removed: Iterable[tuple[TopicPartition, Uuid]]) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, Uuid], list[int]] = {}
    for topic_partition, topic_id in removed:
        by_topic.setdefault((topic_partition.topic, topic_id), []).append(topic_partition.partition)
    return [
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in by_topic.items()
    ]
