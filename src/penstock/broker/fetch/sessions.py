"""Incremental fetch sessions (KIP-227): a client names its partitions once, then only changes.

A session records what was requested and what was sent, so that requests and responses carry only
partitions with news. Pure: session ids and the time are arguments.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.topic_names import MAX_NAME_LENGTH
from penstock.types import Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, ForgottenTopic, PartitionData

PartitionKey: TypeAlias = tuple[str, Uuid, int]

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1
EVICTION_MS: Final = 120_000
ALWAYS_KEPT: Final = 1_000
"""A session may have this many partitions even if the cluster has fewer: a client may learn of new
ones first.
"""


class FetchSessionIdNotFound(KafkaError):
    """The session was evicted or never existed: the client starts a new one."""

    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(KafkaError):
    """A request of this session was lost or repeated."""

    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class FetchSessionTopicIdError(KafkaError):
    """A session began with names and goes on with ids, or the other way round."""

    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class CachedPartition:
    """One partition that a client fetches, and what the last response said about it."""

    def __init__(
        self,
        topic: str,
        topic_id: Uuid,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int = -1,
        sent_high_watermark: int = -1,
        sent_log_start: int = -1,
        *,
        sent_error: bool = False,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        """The start of a follower's own log."""
        self.sent_high_watermark = sent_high_watermark
        self.sent_log_start = sent_log_start
        self.sent_error = sent_error


@dataclass
class FetchSession:
    """The partitions of one client, in the order in which they are read."""

    id: int
    uses_ids: bool
    epoch: int
    used_ms: int
    partitions: dict[PartitionKey, CachedPartition]

    @property
    def is_incremental(self) -> bool:
        """Whether the response carries only partitions with news."""
        return self.id != NO_SESSION and self.epoch > 1

    def update(self, request: FetchRequest) -> None:
        for key, cached in requested(request):
            known = self.partitions.get(key)
            # A follower ignores offsets that were sent in an older epoch.
            if known is not None and known.leader_epoch == cached.leader_epoch:
                cached.sent_high_watermark = known.sent_high_watermark
                cached.sent_log_start = known.sent_log_start
            self.partitions[key] = cached
        for topic in request.forgotten_topics_data:
            for key in _forgotten(topic):
                self.partitions.pop(key, None)

    def sent(self, cached: CachedPartition, data: PartitionData, *, has_records: bool) -> None:
        """Record what the response says about the partition."""
        # A reader whose log diverges truncates it and ignores the rest.
        diverges = data.diverging_epoch.end_offset >= 0
        cached.sent_high_watermark = -1 if diverges else data.high_watermark
        cached.sent_log_start = data.log_start_offset
        cached.sent_error = bool(data.error_code)
        if has_records and self.is_incremental:
            # A partition that had records is read last next time, so that none starves.
            key = (cached.topic, cached.topic_id, cached.index)
            if key in self.partitions:
                self.partitions[key] = self.partitions.pop(key)


def is_full(request: FetchRequest) -> bool:
    """Whether the request names all its partitions, relying on no earlier request."""
    return request.session_epoch in {INITIAL_EPOCH, FINAL_EPOCH}


def partition_count(request: FetchRequest) -> int:
    count = 0
    for topic in request.topics:
        count += len(topic.partitions)
    return count


def has_long_name(request: FetchRequest) -> bool:
    """Whether a name is too long for a topic. Sessions hold names even of topics that do not exist,
    and a name in a request may have 32,767 bytes.
    """
    for topic in request.topics:  # noqa: SIM110  a generator costs more
        if len(topic.topic) > MAX_NAME_LENGTH:
            return True
    return False


def requested(request: FetchRequest) -> Iterable[tuple[PartitionKey, CachedPartition]]:
    for topic in request.topics:
        topic_id = Uuid(topic.topic_id)
        for part in topic.partitions:
            yield (topic.topic, topic_id, part.partition), _cached(topic.topic, topic_id, part)


def _cached(topic: str, topic_id: Uuid, part: FetchPartition) -> CachedPartition:
    return CachedPartition(
        topic,
        topic_id,
        part.partition,
        part.fetch_offset,
        part.partition_max_bytes,
        part.current_leader_epoch,
        part.last_fetched_epoch,
        part.log_start_offset,
    )


def _forgotten(topic: ForgottenTopic) -> Iterable[PartitionKey]:
    return ((topic.topic, Uuid(topic.topic_id), index) for index in topic.partitions)


class FetchSessions:
    """The sessions of a broker, at most `slots` of them. Belongs to the event loop.

    No session has more partitions than the cluster: a session with a million partitions that do not
    exist would cost the loop seconds for each request of a few bytes.
    """

    def __init__(
        self,
        slots: int,
        new_id: Callable[[], int],
        monotonic_ms: Callable[[], int],
        cluster_partitions: Callable[[], int] = lambda: 0,
    ) -> None:
        self._slots, self._new_id, self._monotonic_ms = slots, new_id, monotonic_ms
        self._cluster_partitions = cluster_partitions
        self._sessions: dict[int, FetchSession] = {}
        self._full_until_ms = 0
        """No session can be evicted before this time. A client without a session tries to start one
        with every fetch, and scanning all sessions takes longer than the fetch.
        """

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self,
        request: FetchRequest,
        *,
        uses_ids: bool,
        everything: dict[PartitionKey, CachedPartition] | None = None,
    ) -> FetchSession:
        """The session of the request, updated by it; a full request starts one if there is room.

        `everything` has the partitions of a full request, if the caller has collected them.
        """
        if is_full(request):
            self._sessions.pop(request.session_id, None)
            if everything is None:
                everything = dict(requested(request))
            session = FetchSession(NO_SESSION, uses_ids, INITIAL_EPOCH, 0, everything)
            if request.session_epoch == INITIAL_EPOCH and not has_long_name(request):
                self._keep(session)
            return session
        return self._continued(request, uses_ids=uses_ids)

    def unsent(self, session: FetchSession) -> int:
        """The session id of a response without partitions; a session that was just started is
        dropped.
        """
        if session.is_incremental:
            return session.id
        self._sessions.pop(session.id, None)
        return NO_SESSION

    def _keep(self, session: FetchSession) -> None:
        """Store the session if there is room."""
        session.used_ms = self._monotonic_ms()
        if not self._exceeds(len(session.partitions)) and self._has_room(session.used_ms):
            session.id, session.epoch = self._unused_id(), 1
            self._sessions[session.id] = session

    def _continued(self, request: FetchRequest, *, uses_ids: bool) -> FetchSession:
        found = self._sessions.get(request.session_id)
        if found is None:
            raise FetchSessionIdNotFound(f"no fetch session {request.session_id}")
        if found.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {found.id} is at epoch {found.epoch}, not {request.session_epoch}"
            )
        if found.uses_ids != uses_ids:
            raise FetchSessionTopicIdError(f"fetch session {found.id} mixes names and ids")
        known = len(found.partitions)
        if self._exceeds(partition_count(request)) or has_long_name(request):
            del self._sessions[found.id]
            raise FetchSessionIdNotFound(f"fetch session {found.id} would have too many partitions")
        found.update(request)
        if len(found.partitions) > known and self._exceeds(len(found.partitions)):
            del self._sessions[found.id]
            raise FetchSessionIdNotFound(f"fetch session {found.id} has too many partitions")
        if not found.partitions:
            del self._sessions[found.id]
            return FetchSession(NO_SESSION, uses_ids, INITIAL_EPOCH, 0, {})
        found.epoch = 1 if found.epoch == MAX_EPOCH else found.epoch + 1
        found.used_ms = self._monotonic_ms()
        return found

    def _exceeds(self, count: int) -> bool:
        return count > ALWAYS_KEPT and count > self._cluster_partitions()

    def _has_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self._slots:
            return True
        if now_ms < self._full_until_ms:
            return False
        oldest = min(self._sessions.values(), key=lambda each: each.used_ms, default=None)
        if oldest is None:
            return False
        self._full_until_ms = oldest.used_ms + EVICTION_MS
        if now_ms < self._full_until_ms:
            return False
        del self._sessions[oldest.id]
        return True

    def _unused_id(self) -> int:
        while True:
            number = self._new_id()
            if number != NO_SESSION and number not in self._sessions:
                return number
