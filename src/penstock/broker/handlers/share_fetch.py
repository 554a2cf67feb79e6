"""ShareFetch (key 78, v1-v2): acquires records for a member of a share group, for a limited time.

The request's acknowledgements are written first. Then it waits until `min_bytes` are available or
`max_wait_ms` is over. Batches are sent as they are stored; `acquired_records` lists which of their
records the member has acquired. Acquire modes (v2): whole batches, or never more than
`max_records`. A request that renews locks (v2) gets no records.
"""

from collections.abc import Coroutine

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.parked import Parked, client_wait_ms
from penstock.broker.share import reading
from penstock.broker.share.batch_keys import TurnBudget
from penstock.broker.share.errors import InvalidShareRequest, ShareSessionNotFound
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.broker.share.reading import SharedRecords, ShareRead
from penstock.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, ShareSession, changed
from penstock.broker.share.share_partition import Acquisition
from penstock.broker.translate.share_requests import (
    Acknowledged,
    ShareRequest,
    error_of,
    is_written,
    not_served,
    partition_count,
    session_key,
    until_written,
)
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicIdPartition, Uuid
from penstock.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
READ_COMMITTED = "read_committed"
LOADING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""The share coordinator is not available now: the member fetches again later."""
LASTING = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}

Reply = ShareFetchResponse | Parked[ShareFetchResponse]


def share_fetch(request: ShareFetchRequest, ctx: Context) -> Reply | Coroutine[None, None, Reply]:
    refused = not_served(ctx)
    if refused is not None:
        return ShareFetchResponse(error_code=refused.code, error_message=str(refused))
    try:
        fetching = ShareFetching(request, ctx)
    except KafkaError as error:
        throttle_ms = 0
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            throttle_ms = client_wait_ms(request.max_wait_ms)
        return ShareFetchResponse(
            throttle_time_ms=throttle_ms, error_code=error.code, error_message=str(error)
        )
    if is_written(fetching.acknowledged):
        return fetching.fetched()
    return after_writing(fetching, ctx)


async def after_writing(fetching: "ShareFetching", ctx: Context) -> Reply:
    await until_written(fetching.acknowledged, ctx)
    return fetching.fetched()


class ShareFetching:
    """One ShareFetch, from its session to its response."""

    def __init__(self, request: ShareFetchRequest, ctx: Context) -> None:
        self._request, self._ctx = request, ctx
        self._wanted = wanted(request)
        self._by = ShareRequest(session_key(request), ctx)
        self._added: list[TopicIdPartition] = []
        """Partitions that are new in the session: the response lists them even without records."""
        self._session, self.acknowledged = self._begin()
        self._read_committed = self._by.config.share_isolation_level == READ_COMMITTED
        self._keys: dict[object, None] = {}
        self._reads: dict[TopicIdPartition, ShareRead] = {}
        self._errors: dict[TopicIdPartition, Exception] = {}
        self._got: dict[TopicIdPartition, SharedRecords] = {}
        self._rotation = self._session.in_rotation()
        self._shared: dict[TopicIdPartition, LedSharePartition] = {}

    def _begin(self) -> tuple[ShareSession, Acknowledged]:
        request, services, key = self._request, self._ctx.services, self._by.key
        sessions, epoch = services.share.partitions.sessions, request.share_session_epoch
        for topics in (request.topics, request.forgotten_topics_data):
            self._by.check_count(partition_count(topics))
        named = {
            TopicIdPartition(topic.topic_id, part.partition_index): part.acknowledgement_batches
            for topic in request.topics
            for part in topic.partitions
        }
        forgotten = [
            TopicIdPartition(topic.topic_id, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        ]
        if epoch == INITIAL_EPOCH:
            if not self._ctx.peer.is_connected:
                # A large request is decoded on another thread: no one would close its session.
                raise ShareSessionNotFound("The client has disconnected.")
            session, _ = sessions.open(
                key,
                self._ctx.peer.connection,
                acknowledges=any(named.values()),
                most=services.config.share.group_share_max_share_sessions,
            )
        else:
            session = sessions.get(key, epoch)
        if not named.keys() <= session.partitions.keys():
            after = (session.partitions.keys() | named.keys()).difference(forgotten)
            self._by.check_count(len(after))
        done = self._by.acknowledge(named.items(), is_renewal=request.is_renew_ack)
        if epoch == FINAL_EPOCH:
            services.share.partitions.end_session(key)
        else:
            self._added = changed(session, named, forgotten)
        return session, done

    def fetched(self) -> Reply:
        request = self._request
        if (
            request.share_session_epoch == FINAL_EPOCH
            or self._wanted.max_records <= 0
            or request.is_renew_ack
        ):
            return self._response()
        if self._attempt(is_last=request.max_wait_ms <= 0) or not self._session.partitions:
            return self._response()
        return Parked(
            self._keys,
            client_wait_ms(request.max_wait_ms),
            lambda: self._response() if self._attempt(is_last=False) else None,
            self._expired,
        )

    def _expired(self) -> ShareFetchResponse:
        self._attempt(is_last=True)
        return self._response()

    def _attempt(self, *, is_last: bool) -> bool:
        """Read, and acquire if there is enough; returns whether to respond."""
        limit = self._most_bytes()
        left, self._reads, self._errors = limit, {}, {}
        if not self._ctx.services.share.partitions.sessions.is_open(self._session):
            return True  # it ended meanwhile: records acquired now would not be released
        for each in self._rotation:
            try:
                shared = self._loaded(each)
                self._keys.setdefault(shared)
                self._keys.setdefault(shared.partition.topic_partition)
                if left <= 0:
                    continue
                found = self._read(shared, left, is_first=not self._reads)
            except PARTITION_ERRORS as error:
                if not isinstance(error, KafkaError) or error.code not in LOADING:
                    self._errors[each] = error
                continue
            if found is not None:
                self._reads[each] = found
                left -= found.found.size_bytes
        if self._reads and (limit - left >= self._request.min_bytes or is_last) and self._acquire():
            return True
        return self._has_errors_to_report()

    def _loaded(self, each: TopicIdPartition) -> LedSharePartition:
        """The share-partition; raises if it could not be loaded since the request arrived."""
        known = self._shared.get(each)
        if known is not None and known.state is None and known.refused is not None:
            raise known.refused
        self._shared[each] = found = self._by.shared(each)
        return found

    def _has_errors_to_report(self) -> bool:
        """Whether errors are worth a response now. Lasting ones are reported only once the wait for
        the others is over: a session may have such partitions until the member gets a new
        assignment.
        """
        codes = {code_of(each) for each in self._errors.values()}
        return bool(codes - LASTING) or 0 < len(self._errors) == len(self._rotation)

    def _read(self, shared: LedSharePartition, left: int, *, is_first: bool) -> ShareRead | None:
        if shared.refused is not None:
            raise shared.refused
        return reading.read(
            shared, left, read_committed=self._read_committed, min_one_batch=is_first
        )

    def _acquire(self) -> bool:
        left, budget = self._wanted.max_records, TurnBudget()
        for each, found in self._reads.items():
            if left <= 0 or budget.batches <= 0:
                break
            records = reading.acquire(
                found,
                self._wanted._replace(max_records=left),
                self._ctx.services.resources.worker,
                budget,
                read_committed=self._read_committed,
            )
            if records is not None:
                self._got[each] = records
                left -= sum(one.last - one.first + 1 for one in records.acquired)
        return bool(self._got)

    def _response(self) -> ShareFetchResponse:
        partitions = [*self._got, *self._errors, *self.acknowledged, *self._added]
        topics: dict[Uuid, list[PartitionData]] = {}
        leaders: set[int] = set()
        for each in dict.fromkeys(partitions):
            leader = self._leader(each)
            if leader is not None:
                leaders.add(leader[0])
            topics.setdefault(each.topic_id, []).append(self._data(each, leader))
        return ShareFetchResponse(
            throttle_time_ms=self._throttle_ms(),
            acquisition_lock_timeout_ms=self._by.config.share_record_lock_duration_ms,
            responses=[ShareFetchableTopicResponse(*each) for each in topics.items()],
            node_endpoints=self._by.endpoints(leaders, NodeEndpoint),
        )

    def _most_bytes(self) -> int:
        """The byte limit; a client quota lowers it to what its windows allow: a member throttled
        for longer than its locks last could not acknowledge in time.
        """
        services = self._ctx.services
        most = min(self._request.max_bytes, services.config.network.fetch_max_bytes)
        has_quota = services.quotas.is_on and services.quotas.fetch.is_on
        allowed = services.quotas.most_fetched(*self._client()) if has_quota else None
        return most if allowed is None else min(most, max(allowed, 1))

    def _throttle_ms(self) -> int:
        """A fetch over its quota still returns the acquired records; the client is throttled
        afterwards.
        """
        quotas = self._ctx.services.quotas
        if not self._got or not quotas.is_on or not quotas.fetch.is_on:
            return 0
        size_bytes = sum(each.records.size_bytes for each in self._got.values())
        return quotas.shared_ms(*self._client(), size_bytes)

    def _client(self) -> tuple[str, str]:
        return self._ctx.peer.principal.name, self._ctx.header.client_id or ""

    def _leader(self, each: TopicIdPartition) -> tuple[int, int] | None:
        outcome = self.acknowledged.get(each)
        wrong = outcome if isinstance(outcome, Exception) else None
        return self._by.leader(each, self._errors.get(each) or wrong)

    def _data(self, each: TopicIdPartition, leader: tuple[int, int] | None) -> PartitionData:
        got, error = self._got.get(each), self._errors.get(each)
        code, message = error_of(error)
        ack_code, ack_message = error_of(self.acknowledged.get(each))
        return PartitionData(
            partition_index=each.partition,
            error_code=code,
            error_message=message,
            acknowledge_error_code=ack_code,
            acknowledge_error_message=ack_message,
            current_leader=LeaderIdAndEpoch(*leader or ()),
            records=b"" if got is None else got.records,
            acquired_records=[] if got is None else [AcquiredRecords(*one) for one in got.acquired],
        )


def wanted(request: ShareFetchRequest) -> Acquisition:
    if request.share_acquire_mode not in {BATCH_OPTIMIZED, RECORD_LIMIT}:
        raise InvalidShareRequest(f"unknown acquire mode {request.share_acquire_mode}")
    asked = request.max_wait_ms or request.min_bytes or request.max_bytes or request.max_records
    if request.is_renew_ack and asked:  # KIP-1222
        raise InvalidShareRequest("a request that renews locks cannot ask for records")
    return Acquisition(
        request.member_id or "",
        request.max_records,
        max(request.batch_size, 1),
        request.share_acquire_mode == RECORD_LIMIT,
    )
