"""A member of a share group (KIP-932): locks records and acknowledges them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import uuid4

from penstock.client.cluster import Client
from penstock.client.connection import Connection
from penstock.client.consume import DECOMPRESSED_BYTES, ConsumedRecord
from penstock.client.errors import RETRIABLE, BrokerRefused, check
from penstock.client.isolation import visible
from penstock.client.listing import by_topic
from penstock.client.membership.share import RETRY_ON, ShareMember
from penstock.client.route import ToBroker, ToCoordinator
from penstock.client.share_session import FetchLimits, ShareSessionHandler, batches
from penstock.errors import KafkaError
from penstock.types import BrokerId, Buffer, TopicIdPartition, TopicPartition, Uuid, uuid_text
from penstock.wire.enums import AcknowledgeType
from penstock.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from penstock.wire.messages.share_fetch import PartitionData, ShareFetchResponse
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

JOINING_MS = 200
"""Wait between heartbeats until there is an assignment."""


@dataclass(frozen=True, slots=True)
class SharedRecord(ConsumedRecord):
    """A record locked for this member, and how often it was delivered."""

    delivery_count: int


class ShareConsumer:
    """`poll` sends the heartbeats, so call it more often than the session timeout."""

    def __init__(
        self, client: Client, group: str, topics: Sequence[str], *, max_records: int = 500
    ) -> None:
        self._client, self.group, self._topics = client, group, list(topics)
        self._max_records = max_records
        self.member_id = uuid_text(Uuid(uuid4().bytes))
        self._member = ShareMember(group, self.member_id, topics)
        self._heartbeat_at = 0.0
        self._names: dict[Uuid, str] = {}
        self._assigned: list[TopicPartition] = []
        self._sessions: dict[BrokerId, tuple[Connection, ShareSessionHandler]] = {}
        self._decided: dict[TopicIdPartition, dict[int, AcknowledgeType]] = {}

    async def poll(self, wait_ms: int = 500) -> list[SharedRecord]:
        """Records that are locked for this member from now on; empty if none come in time."""
        await self._heartbeat_when_due()
        if not self._assigned:
            await asyncio.sleep(min(wait_ms, JOINING_MS) / 1000)
            return []
        found: list[SharedRecord] = []
        leaders, failed = await self._led()
        for leader, partitions in leaders.items():
            share_ms = 0 if found else wait_ms // len(leaders)
            # Records from other leaders are already locked: an error here must not drop them.
            try:
                found += await self._fetched(leader, partitions, share_ms)
            except KafkaError as error:
                failed = failed or error
        if failed is None:
            return found
        if not found and failed.code not in RETRIABLE:
            raise failed
        self._client.forget()
        if not found:
            await asyncio.sleep(min(wait_ms, JOINING_MS) / 1000)
        return found

    async def _led(self) -> tuple[dict[BrokerId, list[TopicPartition]], KafkaError | None]:
        """The partitions by leader, and an error if some have none: these do not hold up others."""
        found: dict[BrokerId, list[TopicPartition]] = {}
        failed: KafkaError | None = None
        for name, partitions in by_topic(self._assigned).items():
            try:
                topic = await self._client.topic(name)
            except KafkaError as error:
                failed = failed or error
                continue
            for each in partitions:
                try:
                    found.setdefault(topic.leader(each.partition), []).append(each)
                except KafkaError as error:
                    failed = failed or error
        return found, failed

    def acknowledge(self, records: Iterable[SharedRecord], kind: AcknowledgeType) -> None:
        """Note the acknowledgement of records; `commit` sends it to the brokers."""
        ids = {name: topic for topic, name in self._names.items()}
        for each in records:
            partition = TopicIdPartition(ids[each.partition.topic], each.partition.partition)
            self._decided.setdefault(partition, {})[each.record.offset] = kind

    async def commit(self) -> dict[TopicPartition, KafkaError | None]:
        """Send the acknowledgements; returns the error of each partition, if any."""
        return await self._told(is_last=False)

    async def close(self) -> None:
        """Send the acknowledgements, release other locked records, and leave the group."""
        await self._told(is_last=True)
        with suppress(KafkaError):
            await self._call_coordinator(self._member.leave())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _heartbeat_when_due(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._heartbeat_at:
            return

        async def attempt() -> ShareGroupHeartbeatResponse:
            response = await self._call_coordinator(self._member.heartbeat())
            self._member.received(response)
            return response

        response = await self._client.retrying(attempt, retry_on=RETRY_ON)
        if response.assignment is not None:
            topics = await self._client.existing_topics(self._topics)
            self._names = {topic.id: topic.name for topic in topics}
            self._assigned = [
                TopicPartition(self._names[each.topic_id], index)
                for each in response.assignment.topic_partitions
                if each.topic_id in self._names
                for index in each.partitions
            ]
        self._member.taken()
        due_ms = response.heartbeat_interval_ms if self._assigned else JOINING_MS
        self._heartbeat_at = now + due_ms / 1000

    async def _call_coordinator(
        self, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        connection = await self._client.connection(ToCoordinator(self.group))
        return await connection.call(
            request, ShareGroupHeartbeatResponse, timeout_ms=self._client.request_timeout_ms
        )

    async def _session(self, broker: BrokerId) -> tuple[Connection, ShareSessionHandler]:
        """The session with a broker; it ends with its connection, which releases its locks."""
        connection = await self._client.connection(ToBroker(broker))
        known = self._sessions.get(broker)
        if known is None or known[0] is not connection:
            known = self._sessions[broker] = (
                connection,
                ShareSessionHandler(self.group, self.member_id),
            )
        return known

    async def _fetched(
        self, leader: BrokerId, partitions: Iterable[TopicPartition], wait_ms: int
    ) -> list[SharedRecord]:
        connection, session = await self._session(leader)
        ids = {name: topic for topic, name in self._names.items()}
        by_id = [TopicIdPartition(ids[each.topic], each.partition) for each in partitions]
        try:
            response = await connection.call(
                session.fetch(by_id, FetchLimits(self._max_records, wait_ms)),
                ShareFetchResponse,
                timeout_ms=wait_ms + self._client.request_timeout_ms,
            )
            check(response.error_code, f"share fetch of {self.group}", response.error_message)
        except KafkaError:
            self._sessions.pop(leader, None)  # the next request opens a new one
            raise
        found: list[SharedRecord] = []
        gaps: dict[TopicIdPartition, dict[int, AcknowledgeType]] = {}
        failed: KafkaError | None = None
        for topic in response.responses:
            for each in topic.partitions:
                tp = self._partition(topic.topic_id, each.partition_index)
                if each.error_code and failed is None:
                    about = f"share fetch of {tp}"
                    failed = BrokerRefused(each.error_code, about, each.error_message)
                locked, missing = _locked(tp, each)
                found += locked
                if missing:
                    at = TopicIdPartition(topic.topic_id, each.partition_index)
                    gaps[at] = dict.fromkeys(missing, AcknowledgeType.GAP)
        if gaps:
            await self._tell_gaps(leader, gaps)
        if failed is not None and not found:
            raise failed
        if failed is not None:
            self._client.forget()  # its leader may have changed
        return found

    async def _tell_gaps(
        self, leader: BrokerId, gaps: Mapping[TopicIdPartition, Mapping[int, AcknowledgeType]]
    ) -> None:
        """Acknowledge gaps at once: the group limits how many records are unacknowledged."""
        connection, session = self._sessions[leader]
        gap_batches = {each: batches(offsets) for each, offsets in gaps.items()}
        try:
            response = await connection.call(
                session.acknowledge(gap_batches),
                ShareAcknowledgeResponse,
                timeout_ms=self._client.request_timeout_ms,
            )
            check(response.error_code, f"share group {self.group}", response.error_message)
        except KafkaError:
            del self._sessions[leader]  # its locks end too: the records come again

    async def _told(self, *, is_last: bool) -> dict[TopicPartition, KafkaError | None]:
        decided, self._decided = self._decided, {}
        found: dict[TopicPartition, KafkaError | None] = {}
        for broker, (connection, session) in list(self._sessions.items()):
            mine = {each: batches(decided[each]) for each in decided.keys() & session.partitions}
            if not mine and not is_last:
                continue
            try:
                response = await connection.call(
                    session.acknowledge(mine, is_last=is_last),
                    ShareAcknowledgeResponse,
                    timeout_ms=self._client.request_timeout_ms,
                )
                check(response.error_code, f"share group {self.group}", response.error_message)
            except KafkaError as error:
                del self._sessions[broker]  # its locks end too: the records come again
                found |= {self._partition(*each): error for each in mine}
                continue
            for topic in response.responses:
                for each in topic.partitions:
                    tp = self._partition(topic.topic_id, each.partition_index)
                    found[tp] = (
                        BrokerRefused(each.error_code, f"records of {tp}", each.error_message)
                        if each.error_code
                        else None
                    )
        return found

    def _partition(self, topic: Uuid, index: int) -> TopicPartition:
        return TopicPartition(self._names.get(topic, ""), index)


def _locked(tp: TopicPartition, fetched: PartitionData) -> tuple[list[SharedRecord], list[int]]:
    """The locked records, then the locked offsets that have no record. A response has whole
    batches, and other members may have locked parts of them.
    """
    counts = {
        offset: each.delivery_count
        for each in fetched.acquired_records
        for offset in range(each.first_offset, each.last_offset + 1)
    }
    assert isinstance(fetched.records, Buffer | None), "decoded records are in memory"
    found = [
        SharedRecord(tp, record, counts.pop(record.offset))
        for _, records in visible(fetched.records or b"", (), DECOMPRESSED_BYTES)
        for record in records
        if record.offset in counts
    ]
    return found, list(counts)
