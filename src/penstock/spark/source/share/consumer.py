"""The query's member of a share group: locks records, renews the locks, accepts processed records.

A separate thread sends heartbeats and renews locks while Spark runs a micro-batch, however long
that takes.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain
from time import monotonic
from typing import Final
from uuid import uuid4

from penstock.client.errors import ALWAYS_RETRIABLE, RETRIABLE, BrokerRefused, check
from penstock.client.membership.share import RETRY_ON, ShareMember
from penstock.client.route import ToBroker, ToCoordinator
from penstock.client.share_session import FetchLimits, ShareSessionHandler
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.connection import BlockingConnection, SentRequest
from penstock.spark.client.settings import ClientSettings
from penstock.spark.source.share.held_records import (
    HeldRecords,
    IdentifiedRecords,
    Records,
    at_most,
    count,
)
from penstock.spark.source.share.offset_ranges import OffsetRanges
from penstock.spark.source.share.session import MemberSession
from penstock.types import BrokerId, TopicPartition, Uuid, uuid_text
from penstock.wire.enums import AcknowledgeType
from penstock.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from penstock.wire.messages.share_fetch import ShareFetchResponse
from penstock.wire.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

logger = logging.getLogger("penstock.spark")

MAX_RECORDS: Final = 10_000
"""Most records of one request; the real limit is the group's locks."""
SHARE_ACKNOWLEDGE: Final = 79
RENEWING_VERSION: Final = 2
JOINING_S: Final = 0.5
"""Wait between heartbeats until there is an assignment, which Apache Kafka computes later."""
ACCEPT_MS: Final = 10_000
"""Time-out for retries, below a member's session timeout: no heartbeat is sent meanwhile."""


class SparkShareConsumer:
    """One member of the group, with a session at each broker that leads one of its partitions.

    Called by the thread that plans micro-batches. `_guard` keeps the heartbeat thread out
    meanwhile.
    """

    def __init__(
        self, settings: ClientSettings, group: str, topics: tuple[str, ...], fetch_bytes: int
    ) -> None:
        self._client = BlockingClient(settings)
        self._group = group
        self._member = ShareMember(group, uuid_text(Uuid(uuid4().bytes)), topics)
        self._topics, self._fetch_bytes = topics, fetch_bytes
        self._guard = threading.Condition()
        self._assigned: list[TopicPartition] | None = None
        self._sessions: dict[BrokerId, tuple[BlockingConnection, MemberSession]] = {}
        self._held = HeldRecords()
        self._heartbeat_at = self._renew_at = monotonic()
        self._heartbeat_s = self._lock_s = 5.0
        self._is_stopped = False
        self._thread = threading.Thread(target=self._keep, name="penstock-share", daemon=True)

    def join(self) -> None:
        """Join the group and wait for partitions; without any, this member reads nothing yet."""
        deadline = monotonic() + self._client.settings.timeout_ms / 1000
        with self._guard:
            self._find_topics()
            while True:
                self._heartbeat()
                if self._assigned:
                    break
                if monotonic() + JOINING_S >= deadline:
                    logger.warning("share group %s gave no partitions yet", self._group)
                    break
                self._guard.wait(JOINING_S)
        self._thread.start()

    def acquire(
        self, limit: int | None, wait_ms: int, ends: Mapping[TopicPartition, int] | None
    ) -> IdentifiedRecords:
        """Lock the available records, and return those that the next micro-batch may process.

        Waits up to `wait_ms` for a first record. Records beyond `ends` are locked but not returned.
        """
        with self._guard:
            wait = 0
            while True:
                found = self._held.to_process(ends)
                room = MAX_RECORDS if limit is None else min(limit - count(found), MAX_RECORDS)
                if room <= 0:
                    return self._identified(at_most(limit, found))
                limits = FetchLimits(room, wait, self._fetch_bytes, limit is not None)
                if self._fetch(limits):
                    self._accept()
                elif found or wait == wait_ms:
                    return self._identified(found)
                else:
                    wait = wait_ms

    def _identified(self, records: Records) -> IdentifiedRecords:
        return IdentifiedRecords(records, {tp.topic: self._held.ids[tp.topic] for tp in records})

    def topic_ids(self) -> dict[str, Uuid]:
        """The current ids of the topics."""
        with self._guard:
            return dict(self._held.ids)

    def finish(self, batch: IdentifiedRecords) -> None:
        """Spark has committed a micro-batch with these records: accept them."""
        with self._guard:
            self._held.finished(batch)
            self._accept()

    def stop(self) -> None:
        """Leave the group. Closing the connections releases all locks."""
        with self._guard:
            self._is_stopped = True
            self._guard.notify_all()
        if self._thread.is_alive():
            self._thread.join(self._client.settings.request_timeout_ms / 1000)
        with suppress(KafkaError):
            self._call_coordinator(self._member.leave())
        self._client.close()

    # ---- the group

    def _find_topics(self) -> None:
        topics = self._client.retrying(lambda: self._client.existing(self._topics))
        missing = [name for name in self._topics if name not in topics]
        if missing:
            raise BrokerRefused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {', '.join(missing)} does not exist"
            )
        for name, topic in topics.items():
            if self._held.identify(name, topic.id):
                self._sessions.clear()

    def _heartbeat(self) -> None:
        def attempt() -> ShareGroupHeartbeatResponse:
            response = self._call_coordinator(self._member.heartbeat())
            self._member.received(response)
            return response

        response = self._client.retrying(attempt, retry_on=RETRY_ON, timeout_ms=ACCEPT_MS)
        self._heartbeat_s = response.heartbeat_interval_ms / 1000
        self._heartbeat_at = monotonic() + self._heartbeat_s
        if response.assignment is not None:
            self._assign(response.assignment)
        self._member.taken()

    def _call_coordinator(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        connection = self._client.connection(ToCoordinator(self._group))
        return connection.call(request, ShareGroupHeartbeatResponse)

    def _assign(self, assignment: Assignment) -> None:
        if {each.topic_id for each in assignment.topic_partitions} - set(self._held.ids.values()):
            self._find_topics()  # a topic was recreated
        names = {topic_id: name for name, topic_id in self._held.ids.items()}
        self._assigned = [
            TopicPartition(names[each.topic_id], index)
            for each in assignment.topic_partitions
            if each.topic_id in names
            for index in each.partitions
        ]

    # ---- records

    def _fetch(self, limits: FetchLimits) -> int:
        """One request to each leader, concurrently; returns the number of records locked."""
        return self._client.retrying(
            lambda: self._fetch_once(limits), retry_on=RETRIABLE, timeout_ms=ACCEPT_MS
        )

    def _fetch_once(self, limits: FetchLimits) -> int:
        by_leader = self._client.by_leader(self._assigned or ())
        self._forget_moved(by_leader)
        sent: list[tuple[BrokerId, BlockingConnection, SentRequest[ShareFetchResponse]]] = []
        found, failed = 0, None
        for broker, partitions in by_leader.items():
            # An unreachable broker must not keep us from the others' responses.
            try:
                connection, session = self._session(broker)
                request = session.fetch(partitions, limits)
                sent.append((broker, connection, connection.send(request, ShareFetchResponse)))
            except KafkaError as error:
                self._end_session(broker)
                failed = failed or error
        limit_ms = limits.wait_ms + self._client.settings.request_timeout_ms
        for broker, connection, ticket in sent:
            # Receive all responses, even if one fails: their records are locked.
            try:
                found += self._received(connection.receive(ticket, timeout_ms=limit_ms))
            except KafkaError as error:
                self._end_session(broker)
                failed = failed or error
        if failed is not None and not found:
            raise failed
        return found

    def _forget_moved(self, by_leader: Mapping[BrokerId, Iterable[TopicPartition]]) -> None:
        """What a former leader had locked is lost: the new one hands it out to anybody."""
        locked = self._held.locked()
        for broker, (_, session) in self._sessions.items():
            elsewhere = (led for other, led in by_leader.items() if other != broker)
            moved = session.partitions.intersection(chain.from_iterable(elsewhere))
            session.forget(moved)
            for tp in moved & locked.keys():
                self._held.lost(tp, locked[tp])

    def _received(self, response: ShareFetchResponse) -> int:
        check(response.error_code, "share fetch", response.error_message)
        self._locked_for(response.acquisition_lock_timeout_ms)
        names, found = {topic_id: name for name, topic_id in self._held.ids.items()}, 0
        for topic in response.responses:
            if topic.topic_id not in names:
                continue  # not requested
            for each in topic.partitions:
                tp = TopicPartition(names[topic.topic_id], each.partition_index)
                if each.error_code in RETRIABLE:
                    self._client.forget()  # its leader has moved
                    continue
                check(each.error_code, f"share fetch of {tp}", each.error_message)
                taken = OffsetRanges.of(
                    (one.first_offset, one.last_offset + 1) for one in each.acquired_records
                )
                self._held.acquired(tp, taken)
                found += taken.count
        return found

    def _accept(self) -> None:
        """Accept processed records; after a failure they are accepted when delivered again."""
        try:
            self._client.retrying(self._accept_once, timeout_ms=ACCEPT_MS)
        except KafkaError as error:
            logger.warning("share group %s: could not accept: %s", self._group, error)

    def _accept_once(self) -> None:
        refused: KafkaError | None = None
        for tp, records, error in self._acknowledged(
            AcknowledgeType.ACCEPT, self._held.to_accept()
        ):
            if error is None:
                self._held.accepted(tp, records)
            elif error.code in ALWAYS_RETRIABLE:
                refused = error
            else:
                self._held.lost(tp, records)
        if refused is not None:
            raise refused

    def _renew(self) -> None:
        """Renew all locks. A lock that cannot be renewed may still be valid: accepting the record
        shows that. A group may forbid renewals, and brokers refuse them as if the lock had ended.
        """
        refused: dict[str, None] = {}
        for _, _, error in self._acknowledged(AcknowledgeType.RENEW, self._held.locked()):
            if error is not None:
                refused[str(error)] = None
        for text in refused:
            logger.warning("share group %s: locks are not renewed: %s", self._group, text)

    def _acknowledged(
        self, kind: AcknowledgeType, wanted: Records
    ) -> list[tuple[TopicPartition, OffsetRanges, KafkaError | None]]:
        """The result for each partition's records. Locks outside of any session are lost."""
        found: list[tuple[TopicPartition, OffsetRanges, KafkaError | None]] = []
        for broker, (connection, session) in list(self._sessions.items()):
            mine = {tp: each for tp, each in wanted.items() if tp in session.partitions}
            if not mine:
                continue
            version = connection.versions.get(SHARE_ACKNOWLEDGE, 0)
            if kind is AcknowledgeType.RENEW and version < RENEWING_VERSION:
                continue
            try:
                found += self._acknowledge(connection, session, kind, mine)
            except KafkaError as error:
                logger.warning("the share session with broker %d ended: %s", broker, error)
                self._end_session(broker)
        return found

    def _acknowledge(
        self,
        connection: BlockingConnection,
        session: MemberSession,
        kind: AcknowledgeType,
        records: Records,
    ) -> list[tuple[TopicPartition, OffsetRanges, KafkaError | None]]:
        response = connection.call(session.acknowledge(kind, records), ShareAcknowledgeResponse)
        check(response.error_code, "share acknowledge", response.error_message)
        if kind is AcknowledgeType.RENEW:
            self._locked_for(response.acquisition_lock_timeout_ms)
        by_id = {(self._held.ids[tp.topic], tp.partition): tp for tp in records}
        found: list[tuple[TopicPartition, OffsetRanges, KafkaError | None]] = []
        for topic in response.responses:
            for each in topic.partitions:
                tp = by_id[topic.topic_id, each.partition_index]
                error = None
                if each.error_code:
                    error = BrokerRefused(each.error_code, f"records of {tp}", each.error_message)
                    if (
                        each.error_code == ErrorCode.INVALID_RECORD_STATE
                        and len(records[tp].ranges) > 1
                    ):
                        # One expired lock makes the broker refuse all: try the ranges one by one.
                        for single in records[tp]:
                            alone = {tp: OffsetRanges((single,))}
                            found += self._acknowledge(connection, session, kind, alone)
                        continue
                found.append((tp, records[tp], error))
        return found

    # ---- sessions and time

    def _session(self, broker: BrokerId) -> tuple[BlockingConnection, MemberSession]:
        connection = self._client.connection(ToBroker(broker))
        known = self._sessions.get(broker)
        if known is not None and known[0] is connection:
            return known
        self._end_session(broker)
        session = MemberSession(ShareSessionHandler(self._group, self._member.id), self._held.ids)
        opened = self._sessions[broker] = connection, session
        return opened

    def _end_session(self, broker: BrokerId) -> None:
        """Its locks are lost. Closes the connection: the broker may still know the session."""
        known = self._sessions.pop(broker, None)
        if known is not None:
            connection, session = known
            connection.close()
            for tp, records in self._held.locked().items():
                if tp in session.partitions:
                    self._held.lost(tp, records)

    def _locked_for(self, lock_ms: int) -> None:
        if lock_ms > 0:
            self._lock_s = lock_ms / 1000
        self._renew_at = min(self._renew_at, monotonic() + self._lock_s / 3)
        self._guard.notify_all()

    def _keep(self) -> None:
        """Send heartbeats and renew locks when they are due."""
        with self._guard:
            while not self._is_stopped:
                try:
                    if monotonic() >= self._heartbeat_at:
                        self._heartbeat_at = monotonic() + self._heartbeat_s
                        self._heartbeat()
                    if monotonic() >= self._renew_at:
                        self._renew_at = monotonic() + self._lock_s / 3
                        self._renew()
                except KafkaError as error:
                    logger.warning("share group %s: %s", self._group, error)
                due = min(self._heartbeat_at, self._renew_at)
                self._guard.wait(max(due - monotonic(), 0.001))
