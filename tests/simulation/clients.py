"""Producers and readers that use the wire protocol over the simulated network."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from penstock.client.address import Address
from penstock.client.connection import Connection, connect
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.record.batch import batches
from penstock.record.record import records
from penstock.testing.logs import batch_of
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.schema import Message
from simulation.broker import PORT
from simulation.history import DECOMPRESSED, History, Shard

R = TypeVar("R", bound=Message)
TIMEOUT_MS = 1_500
PATIENCE = 200
"""The number of attempts; together they take longer than any fault."""
LATEST, EARLIEST = -1, -2
LOST = (KafkaError, ProtocolError, OSError)


class Link:
    """Connections of one client, by address."""

    def __init__(self, name: str, brokers: int, chance: Random) -> None:
        self._name, self._brokers, self.chance = name, brokers, chance
        self._connections: dict[Address, Connection] = {}

    async def call(self, address: Address, request: Message, answer: type[R]) -> R:
        known = self._connections.get(address)
        if known is None or not known.is_open:
            known = await connect(address, client_id=self._name, timeout_ms=TIMEOUT_MS)
            self._connections[address] = known
        return await known.call(request, answer, timeout_ms=TIMEOUT_MS)

    def somebody(self) -> Address:
        """Some broker."""
        return Address(f"broker-{self.chance.randrange(self._brokers)}", PORT)

    async def anyone(self, request: Message, answer: type[R]) -> R:
        return await self.call(self.somebody(), request, answer)

    async def leader(self, where: TopicPartition) -> tuple[Address, Uuid] | None:
        """The leader according to some broker."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=where.topic)], allow_auto_topic_creation=False
        )
        answer = await self.anyone(request, MetadataResponse)
        addresses = {each.node_id: Address(each.host, each.port) for each in answer.brokers}
        for topic in answer.topics:
            for part in topic.partitions:
                if part.partition_index == where.partition and part.leader_id in addresses:
                    return addresses[part.leader_id], topic.topic_id
        return None

    def close(self) -> None:
        for each in self._connections.values():
            each.abort()


@dataclass
class Sequence:
    """An idempotent producer's sequence in one partition."""

    next: int = 0
    refused: int = 0
    """Consecutive refusals as out of order."""


@dataclass
class Producer:
    """Sends one record at a time. Idempotent producers repeat it until it is acknowledged."""

    name: str
    link: Link
    history: History
    partitions: list[TopicPartition]
    acks: int
    idempotent: bool
    promised: bool = True
    """Whether acknowledged records must survive: the topic needs two in-sync replicas."""
    producer_id: int = -1
    count: int = 0
    sequences: dict[TopicPartition, Sequence] = field(default_factory=dict)
    leaders: dict[TopicPartition, tuple[Address, Uuid]] = field(default_factory=dict)

    async def run(self, is_over: Callable[[], bool]) -> None:
        chance = self.link.chance
        while not is_over():
            where = chance.choice(self.partitions)
            self.count += 1
            records = chance.choice([1, 1, 2, 3])
            values = [f"{self.name}.{self.count}.{each}".encode() for each in range(records)]
            done = False
            while not done and not is_over():
                done = await self._tried(where, values) or not self.idempotent
                await asyncio.sleep(chance.uniform(0.005, 0.1))

    async def _tried(self, where: TopicPartition, values: list[bytes]) -> bool:
        try:
            if self.idempotent and self.producer_id < 0:
                await self._begin()
            if where not in self.leaders:
                found = await self.link.leader(where)
                if found is None:
                    return False
                self.leaders[where] = found
            return await self._sent(where, values)
        except LOST:
            self.leaders.pop(where, None)
            return False

    async def _begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
        answer = await self.link.anyone(request, InitProducerIdResponse)
        if not answer.error_code:
            self.producer_id = answer.producer_id
            self.sequences.clear()

    async def _sent(self, where: TopicPartition, values: list[bytes]) -> bool:
        if self.idempotent and self.producer_id < 0:
            return False
        address, topic_id = self.leaders[where]
        self.history.sent |= dict.fromkeys(values, topic_id)
        sequence = self.sequences.setdefault(where, Sequence())
        batch = batch_of(
            *values,
            timestamp=self.history.now_ms(),
            producer_id=self.producer_id,
            sequence=sequence.next if self.idempotent else -1,
        )
        request = ProduceRequest(
            acks=self.acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=where.topic,
                    topic_id=topic_id,
                    partition_data=[PartitionProduceData(index=where.partition, records=batch)],
                )
            ],
        )
        answer = await self.link.call(address, request, ProduceResponse)
        reported = answer.responses[0].partition_responses[0]
        if reported.error_code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            sequence.next += len(values)
            sequence.refused = 0
            if (
                self.acks == -1
                and self.promised
                and not reported.error_code
                and reported.base_offset >= 0
            ):
                self.history.note(
                    f"acked {values[0].decode()} of {where} at {reported.base_offset}"
                )
                for offset, value in enumerate(values, reported.base_offset):
                    self.history.acked(Shard(topic_id, where), offset, value)
            return True
        if reported.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # A former leader may refuse a sequence that it does not know yet, but not for ever.
            sequence.refused += 1
            if sequence.refused > PATIENCE:
                self.history.broken(
                    f"{where} does not know the record before {values[0]!r}, which was acknowledged"
                )
        self.history.count(f"produce refused: {ErrorCode(reported.error_code).name}")
        self.leaders.pop(where, None)
        return False


@dataclass
class Reader:
    """Reads a partition from its leader continuously, and sometimes asks for its end."""

    name: str
    link: Link
    history: History
    where: TopicPartition
    offset: int = 0
    roams: bool = False
    """It reads from any replica, as a consumer with a rack may (KIP-392)."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        chance = self.link.chance
        while not is_over():
            try:
                found = await self.link.leader(self.where)
                while found is not None and not is_over():
                    work: Callable[..., Awaitable[bool]] = (
                        self._latest if chance.random() < 0.1 else self._fetched
                    )
                    if not await work(*found):
                        break
                    await asyncio.sleep(chance.uniform(0.01, 0.2))
            except LOST:
                self.history.count("reads lost")
            await asyncio.sleep(chance.uniform(0.01, 0.2))

    async def _fetched(self, address: Address, topic_id: Uuid) -> bool:
        part = FetchPartition(
            partition=self.where.partition, fetch_offset=self.offset, partition_max_bytes=4096
        )
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=self.where.topic, topic_id=topic_id, partitions=[part])],
        )
        at = self.link.somebody() if self.roams else address
        answer = await self.link.call(at, request, FetchResponse)
        reported = answer.responses[0].partitions[0] if answer.responses else None
        if reported is None or reported.error_code:
            if reported is not None and reported.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self.history.count("reader out of range")
                self.offset = await self._listed(address, EARLIEST) or 0
            return False
        assert isinstance(reported.records, bytes | bytearray | memoryview | None)
        data = bytes(reported.records or b"")
        shard = Shard(topic_id, self.where)
        for position, header in batches(data):
            for record in records(data[position:], header, DECOMPRESSED):
                self.history.count("read")
                self.history.is_read(shard, record.offset, record.value or b"", self.name)
            self.offset = max(self.offset, header.next_offset)
        return True

    async def _latest(self, address: Address, topic_id: Uuid) -> bool:
        reported = await self._told(address, LATEST)
        if reported.error_code:
            self.history.count(f"latest refused: {ErrorCode(reported.error_code).name}")
            return False
        self.history.count("latest told")
        self.history.told_latest(
            Shard(topic_id, self.where), reported.leader_epoch, reported.offset
        )
        return True

    async def _listed(self, address: Address, at: int) -> int | None:
        reported = await self._told(address, at)
        return None if reported.error_code else reported.offset

    async def _told(self, address: Address, at: int) -> ListOffsetsPartitionResponse:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=self.where.topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=self.where.partition, timestamp=at)
                    ],
                )
            ],
        )
        answer = await self.link.call(address, request, ListOffsetsResponse)
        return answer.topics[0].partitions[0]
