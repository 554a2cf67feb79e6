"""Reads the partitions of one fetch, when it arrives and while it waits.

Applies the rules: which reader may read which replica, and up to which offset. The bytes stay in
their files.
"""

from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Final

from penstock.broker.cluster import Cluster
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.fetch.answer import (
    NO_PREFERENCE,
    by_topic,
    has_everything,
    has_moved,
    must_be_sent,
)
from penstock.broker.fetch.budget import FetchBudget
from penstock.broker.fetch.sessions import CachedPartition, FetchSession
from penstock.broker.replicas.throttles import LeaderThrottle
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.log.lookup import LogSlice
from penstock.metadata.leaders import endpoints, leader_of
from penstock.replication import read_fencing
from penstock.replication.errors import (
    FencedLeaderEpoch,
    NotLeader,
    UnknownPartition,
    UnknownTopicId,
)
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.replication.partition import Partition
from penstock.replication.partition_lookup import partition_here, topic_name
from penstock.replication.partitions import Partitions
from penstock.replication.selector import ReplicaView, in_same_rack
from penstock.types import BrokerId
from penstock.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

RESPONSE_BYTES: Final = 16
TOPIC_BYTES: Final = 8
PARTITION_BYTES: Final = 40
"""Estimated bytes of a response, a topic and a partition, without names and records."""

NOT_DIVERGING: Final = EpochEndOffset()
PARTITIONS_A_TURN: Final = 1000
"""Partitions read per turn of a request that names very many: a few milliseconds."""


class NotABroker(KafkaError):
    """Only brokers may fetch as replicas: follower progress decides what is committed."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class TopicNotAuthorized(KafkaError):
    """The client may not read this topic."""

    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class FetchParams:
    """The reader of a fetch, and the rules for it."""

    def __init__(
        self,
        *,
        listener: str,
        replica_id: int,
        broker_epoch: int,
        may_be_replica: bool,
        is_valid: bool,
        read_committed: bool,
        may_read_followers: bool,
        rack: str,
        tells_leader: bool,
        may_read: Callable[[str], bool] | None = None,
    ) -> None:
        self.listener = listener
        self.replica_id = replica_id
        """The follower that fetches; below 0 for a consumer."""
        self.broker_epoch = broker_epoch
        self.may_be_replica = may_be_replica
        """Whether the request came on the listener that brokers use."""
        self.is_valid = is_valid
        self.read_committed = read_committed
        self.may_read_followers = may_read_followers
        self.rack = rack
        """The rack of a consumer that should read nearby; empty: racks do not decide."""
        self.tells_leader = tells_leader
        self.may_read = may_read
        """Returns whether the client may read a topic; None: it may read every topic."""


class FetchReading:
    """The result of a fetch over the partitions of its session.

    It notes a follower's progress only when the request arrives: a later read, when the follower
    may have died, must not make it look alive.
    """

    def __init__(
        self,
        session: FetchSession,
        params: FetchParams,
        budget: FetchBudget,
        wait_ms: int,
        cluster: Cluster,
        partitions: Partitions,
        throttle: LeaderThrottle,
    ) -> None:
        self.session, self._params, self._budget = session, params, budget
        self.wait_ms = wait_ms
        """How long the fetch may wait; shorter if a follower is throttled, as nothing else would
        wake it.
        """
        self._cluster, self._partitions, self._throttle = cluster, partitions, throttle
        self._image = cluster.image
        self._is_arriving = False
        self._found: list[tuple[CachedPartition, PartitionData | None]] = []
        self._positions: dict[Hashable, int] = {}
        """The position of each partition in `_found`."""
        self._changed: set[Hashable] = set()
        self._slices: dict[Hashable, tuple[Partition, int]] = {}
        """Bytes by partition, counted when the response is sent: a waiting fetch reads often."""

    def read_all(self, *, is_arriving: bool = False) -> None:
        self._begin(is_arriving=is_arriving)
        self._read_some(self.session.partitions.values())
        self._is_arriving = False

    def read_all_in_turns(self) -> Generator[None, None, None]:
        """Like `read_all` on arrival, in steps, so that other requests get turns in between."""
        self._begin(is_arriving=True)
        everything = list(self.session.partitions.values())
        for start in range(0, len(everything), PARTITIONS_A_TURN):
            self._read_some(everything[start : start + PARTITIONS_A_TURN])
            yield
        self._is_arriving = False

    def _begin(self, *, is_arriving: bool) -> None:
        self._is_arriving = is_arriving
        self._image = self._cluster.image
        self._budget.clear()
        self.has_news = False
        """A response is due at once: an error, a diverging log, or a nearer replica."""
        self._slices.clear()
        self._positions.clear()
        self._changed.clear()
        self._found = []

    def _read_some(self, some: Iterable[CachedPartition]) -> None:
        found = self._found
        for cached in some:
            found.append((cached, self._read(cached, len(found))))

    def notice(self, key: Hashable) -> None:
        """Make the next `read_changed` read this partition again."""
        self._changed.add(key)

    def read_changed(self) -> None:
        """Read only changed partitions: a session may have thousands, and a client that wants many
        bytes waits through thousands of changes.
        """
        self._image = self._cluster.image
        for key in self._changed:
            position = self._positions.get(key)
            if position is None:
                continue  # another connection continued the session without this partition
            cached, _ = self._found[position]
            if key in self._slices:
                self._budget.give_back(self._slices.pop(key)[1])
            self._found[position] = (cached, self._read(cached, position))
        self._changed.clear()

    @property
    def keys(self) -> Iterable[Hashable]:
        return self._positions

    @property
    def is_for_follower(self) -> bool:
        return self._params.replica_id >= 0

    @property
    def is_ready(self) -> bool:
        return self._budget.is_enough or self.has_news

    @property
    def is_empty(self) -> bool:
        return self._budget.is_empty

    def _read(self, cached: CachedPartition, position: int) -> PartitionData | None:
        """The partition's part of the response; None if it has neither records nor news."""
        params = self._params
        try:
            if not params.is_valid or cached.max_bytes < 0:
                raise InvalidRequest("a negative limit, or an unknown isolation level")
            name = topic_name(
                cached.topic, cached.topic_id, self._image, by_id=self.session.uses_ids
            )
            if params.may_read is not None and not params.may_read(name):
                raise TopicNotAuthorized(name)
            partition = partition_here(self._partitions, self._image, name, cached.index)
            self._positions[partition.topic_partition] = position
            if params.replica_id >= 0:
                return self._read_for_follower(partition, cached)
            if params.may_read_followers:
                read_fencing.check_readable(partition, max(cached.leader_epoch, -1))
            else:
                partition.check_leader(max(cached.leader_epoch, -1))
            preferred = self._preferred(partition, cached) if params.rack else NO_PREFERENCE
            if preferred != NO_PREFERENCE:
                self.has_news = True
                return self._data(partition, cached, preferred=preferred)
            return self._read_for_consumer(partition, cached)
        except PARTITION_ERRORS as error:
            self.has_news = True
            self._partitions.failed_fetches += self._is_arriving
            with_list = params.read_committed or is_unknown(error)
            return PartitionData(
                partition_index=cached.index,
                error_code=code_of(error),
                high_watermark=-1,
                current_leader=self._current_leader(cached, error),
                aborted_transactions=[] if with_list else None,
                records=b"",
            )

    def _current_leader(self, cached: CachedPartition, error: Exception) -> LeaderIdAndEpoch:
        """The current leader, sent with the error (KIP-951)."""
        if self._params.tells_leader and isinstance(error, (NotLeader, FencedLeaderEpoch)):
            name = self._image.topic_names.get(cached.topic_id, "")
            found = leader_of(self._image, name, cached.index)
            if found is not None:
                return LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
        return LeaderIdAndEpoch()

    def _read_for_follower(
        self, partition: Partition, cached: CachedPartition
    ) -> PartitionData | None:
        params = self._params
        if not params.may_be_replica:
            raise NotABroker(f"{params.listener} is not the listener that brokers use")
        partition.check_leader(max(cached.leader_epoch, -1))
        read_fencing.check_follower(
            partition, params.replica_id, cached.leader_epoch, params.broker_epoch
        )
        is_at_end = has_everything(partition.log, cached)
        records = None
        if not is_at_end:
            diverged = self._diverged(partition, cached)
            if diverged is not None:
                return diverged
            records = self._slice_for_follower(partition, cached)
        if self._is_arriving:
            note_fetch(
                partition,
                FollowerFetch(
                    params.replica_id,
                    cached.fetch_offset,
                    cached.log_start_offset,
                    params.broker_epoch,
                ),
            )
        if is_at_end and self.session.is_incremental and not has_moved(partition.log, cached):
            return None
        return self._data(partition, cached, records=records)

    def _slice_for_follower(self, partition: Partition, cached: CachedPartition) -> LogSlice | None:
        """The records for a follower; None while the replication throttle holds it back."""
        throttled = self._throttle.concerns(partition, self._params.replica_id)
        if throttled and (owed_ms := self._throttle.delay_ms(self.wait_ms)):
            self.wait_ms = owed_ms
            return None
        records = self._slice(partition, cached, partition.log.end_offset)
        if throttled and records is not None:
            self._throttle.record(records.size_bytes)
        return records

    def _read_for_consumer(self, partition: Partition, cached: CachedPartition) -> PartitionData:
        diverged = self._diverged(partition, cached)
        if diverged is not None:
            return diverged
        read_committed = self._params.read_committed
        up_to = read_fencing.visible_end(partition, read_committed=read_committed)
        records = self._slice(partition, cached, up_to)
        aborted = None
        if read_committed and records is not None:
            aborted = [
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in partition.log.aborted_in(cached.fetch_offset, records, up_to)
            ]
        return self._data(partition, cached, records=records, aborted=aborted)

    def _slice(self, partition: Partition, cached: CachedPartition, up_to: int) -> LogSlice | None:
        budget = self._budget
        if not budget.has_slices_left:
            if cached.fetch_offset < up_to:
                budget.leave_out_slice()
            return None
        room = budget.room(cached.max_bytes)
        found = partition.log.read(
            cached.fetch_offset, room, up_to=up_to, min_one_batch=budget.is_empty
        )
        if found is not None:
            budget.take(found.size_bytes)
            self._slices[partition.topic_partition] = partition, found.size_bytes
        elif not budget.is_empty and cached.fetch_offset < up_to:
            budget.leave_out(room)
        return found

    def _diverged(self, partition: Partition, cached: CachedPartition) -> PartitionData | None:
        found = read_fencing.diverging_epoch(
            partition, cached.last_fetched_epoch, cached.fetch_offset
        )
        if found is None:
            return None
        self.has_news = True
        diverging = EpochEndOffset(epoch=found.epoch, end_offset=found.end_offset)
        return self._data(partition, cached, diverging=diverging)

    def _data(
        self,
        partition: Partition,
        cached: CachedPartition,
        *,
        records: LogSlice | None = None,
        aborted: list[AbortedTransaction] | None = None,
        diverging: EpochEndOffset = NOT_DIVERGING,
        preferred: int = NO_PREFERENCE,
    ) -> PartitionData:
        log = partition.log
        return PartitionData(
            partition_index=cached.index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            diverging_epoch=diverging,
            aborted_transactions=(aborted or []) if self._params.read_committed else None,
            preferred_read_replica=preferred,
            records=b"" if records is None else records,
        )

    def _preferred(self, partition: Partition, cached: CachedPartition) -> int:
        """The follower in the consumer's rack that it should read from, if this broker leads."""
        if not partition.leads:
            return NO_PREFERENCE
        brokers = self._image.brokers
        readable = [
            ReplicaView(replica, broker.rack, end_offset, behind_ms)
            for replica, end_offset, behind_ms in read_fencing.readable_followers(
                partition, cached.fetch_offset
            )
            if (broker := brokers.get(BrokerId(replica))) is not None
            and broker.endpoint(self._params.listener) is not None
        ]
        own = brokers.get(BrokerId(partition.leader))
        leader = ReplicaView(partition.leader, own.rack if own else None, 0, 0)
        chosen = in_same_rack(self._params.rack, leader, readable)
        return NO_PREFERENCE if chosen is None else chosen

    def _chosen(
        self, found: Iterable[tuple[CachedPartition, PartitionData | None]]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        is_incremental = self.session.is_incremental
        return [
            (cached, data)
            for cached, data in found
            if data is not None and (not is_incremental or must_be_sent(cached, data))
        ]

    def size_bytes(self) -> int:
        """The approximate size of the response; encoding it twice for the exact size is not worth
        it.
        """
        chosen = self._chosen(self._found)
        topics = {cached.topic for cached, _ in chosen}
        return (
            RESPONSE_BYTES
            + sum([TOPIC_BYTES + len(topic) for topic in topics])
            + sum([PARTITION_BYTES + len(data.records or b"") for _, data in chosen])
        )

    def response(self) -> FetchResponse:
        chosen = self._sent(self._found)
        return self._response(chosen, list(by_topic(chosen)))

    def response_in_turns(self) -> Generator[None, None, FetchResponse]:
        """Like `response`, in steps."""
        chosen: list[tuple[CachedPartition, PartitionData]] = []
        for start in range(0, len(self._found), PARTITIONS_A_TURN):
            chosen += self._sent(self._found[start : start + PARTITIONS_A_TURN])
            yield
        topics = []
        for count, each in enumerate(by_topic(chosen), 1):
            topics.append(each)
            if count % PARTITIONS_A_TURN == 0:
                yield
        return self._response(chosen, topics)

    def _sent(
        self, found: Iterable[tuple[CachedPartition, PartitionData | None]]
    ) -> list[tuple[CachedPartition, PartitionData]]:
        """The partitions of the response; the session records them as sent."""
        session, chosen = self.session, self._chosen(found)
        for cached, data in chosen:
            session.sent(cached, data, has_records=isinstance(data.records, LogSlice))
        return chosen

    def _response(
        self,
        chosen: list[tuple[CachedPartition, PartitionData]],
        topics: list[FetchableTopicResponse],
    ) -> FetchResponse:
        for partition, size_bytes in self._slices.values():
            if self.is_for_follower:
                partition.replication_bytes_out += size_bytes
            else:
                partition.bytes_out += size_bytes
        return FetchResponse(
            session_id=self.session.id,
            responses=topics,
            node_endpoints=self._leaders(chosen)
            if self.has_news and self._params.tells_leader
            else [],
        )

    def _leaders(
        self, chosen: Iterable[tuple[CachedPartition, PartitionData]]
    ) -> list[NodeEndpoint]:
        """The addresses of the leaders that the response names; followers know them already."""
        if self.is_for_follower:
            return []
        named = (data.current_leader.leader_id for _, data in chosen)
        leaders = [leader for leader in named if leader >= 0]
        return [
            NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in endpoints(self._image, self._params.listener, leaders)
        ]


def is_unknown(error: Exception) -> bool:
    """Whether no log was read; Kafka then sends an empty list of aborted transactions, not null."""
    return isinstance(error, (UnknownPartition, UnknownTopicId, InvalidRequest))
