"""A producer whose writes, and offsets of groups, become visible together or not at all.

    async with TransactionalProducer(client, "billing-1") as producer:
        async with producer.transaction():
            await producer.send([ProducerRecord("invoices", b"...")])
            await producer.send_offsets(offsets, consumer.group_metadata)

The block commits, or aborts if it raises. `begin`, `commit` and `abort` do the same by hand.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.listing import by_topic
from penstock.client.membership.member import GroupMetadata
from penstock.client.produce import ProducedRecord, ProducerRecord, all_written
from penstock.client.record_sender import BATCH_BYTES, RecordSender
from penstock.client.route import KeyType, ToCoordinator
from penstock.client.transaction import (
    CLIENTS_ADD_PARTITIONS,
    EXPLICIT_END_TXN,
    EXPLICIT_OFFSET_COMMIT,
    ClientTransactions,
    State,
    TransactionMustAbort,
)
from penstock.clock import Clock
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.record.compression import Codec
from penstock.types import Offset, TopicPartition
from penstock.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from penstock.wire.messages.end_txn import EndTxnResponse
from penstock.wire.messages.init_producer_id import InitProducerIdResponse
from penstock.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)


class TransactionalProducer:
    """See the module. Only one task may call it at a time.

    `ProducerFenced` means that another producer has taken the transactional id: close this one.
    After any other error in a transaction, abort it; the next one starts afresh.
    """

    def __init__(
        self,
        client: Client,
        transactional_id: str,
        *,
        timeout_ms: int = 60_000,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        create_topics: bool = False,
        batch_bytes: int = BATCH_BYTES,
        clock: Clock | None = None,
    ) -> None:
        if not transactional_id:
            raise ConfigError("transactional.id must not be empty")
        self._client = client
        self._transactions = ClientTransactions(transactional_id, timeout_ms)
        self._sender = RecordSender(
            client,
            codec=codec,
            level=level,
            create_topics=create_topics,
            batch_bytes=batch_bytes,
            clock=clock,
        )

    @property
    def transactional_id(self) -> str:
        return self._transactions.id

    @property
    def in_transaction(self) -> bool:
        return self._transactions.state in {State.OPEN, State.MUST_ABORT, State.ENDING}

    async def init(self) -> None:
        """Fence other producers of the id and abort their transaction; `begin` does it if due."""
        if self._transactions.needs_init:
            await self._client.retrying(self._init, retry_on=RETRIABLE)

    async def begin(self) -> None:
        await self.init()
        self._transactions.begin()

    async def send(self, records: Iterable[ProducerRecord]) -> list[ProducedRecord]:
        """Write the records; returns when all in-sync replicas have them."""
        try:
            return all_written(await self.deliver(records))
        except KafkaError as error:
            raise self._transactions.failed(error) from error.__cause__

    async def deliver(
        self,
        records: Iterable[ProducerRecord],
        *,
        past_refused: bool = False,
        retry_on: frozenset[ErrorCode] = RETRIABLE,
    ) -> list[ProducedRecord | BrokerRefused | None]:
        """The result of each record: see `RecordSender.deliver`.

        A rejected record does not fail the transaction: the caller decides.
        """
        try:
            return await self._sender.deliver(
                records,
                self._transactions.session,
                past_refused=past_refused,
                before_send=self._add_partitions,
                retry_on=retry_on,
            )
        except KafkaError as error:
            raise self._transactions.failed(error) from error.__cause__
        except BaseException:  # cancelled: what was written is unknown
            self._transactions.failed(Interrupted("a send was interrupted"))
            raise

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, Offset], member: GroupMetadata
    ) -> None:
        """Commit the group's offsets with the transaction: the next records to read (KIP-447)."""
        if not offsets:
            return
        try:
            await self._send_offsets(offsets, member)
        except KafkaError as error:
            raise self._transactions.failed(error) from error.__cause__
        except BaseException:  # cancelled: whether they were committed is unknown
            self._transactions.failed(Interrupted("a commit of offsets was interrupted"))
            raise

    async def commit(self) -> None:
        """Make the transaction visible. If this raises a time-out, call it again."""
        await self._end(commit=True)

    async def abort(self) -> None:
        await self._end(commit=False)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin; commit at the end, or abort if the block raises."""
        await self.begin()
        try:
            yield
        except BaseException:
            with suppress(KafkaError):  # raise the block's own error
                await self.abort()
            raise
        try:
            await self.commit()
        except TransactionMustAbort:
            with suppress(KafkaError):
                await self.abort()
            raise

    async def close(self) -> None:
        """Abort an open transaction, so that readers need not wait for its timeout."""
        if self._transactions.state in {State.OPEN, State.MUST_ABORT}:
            with suppress(KafkaError):
                await self.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _init(self) -> None:
        connection = await self._client.connection(self._coordinator)
        response = await connection.call(
            self._transactions.init_request(),
            InitProducerIdResponse,
            timeout_ms=self._client.request_timeout_ms,
        )
        self._transactions.initialized(response, connection.features)

    async def _add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        request = self._transactions.writing(partitions)
        if request is not None:
            check = self._transactions.check_added
            await self._ask(
                request, AddPartitionsToTxnResponse, check, newest=CLIENTS_ADD_PARTITIONS
            )

    async def _send_offsets(
        self, offsets: Mapping[TopicPartition, Offset], member: GroupMetadata
    ) -> None:
        joining = self._transactions.joining(member.group)
        if joining is not None:
            await self._ask(
                joining,
                AddOffsetsToTxnResponse,
                lambda response: self._transactions.check_joined(response.error_code),
            )
        ids = {
            name: (await self._client.retrying(partial(self._client.topic, name))).id
            for name in by_topic(offsets)
        }
        await self._ask(
            self._transactions.offsets_request(offsets, member, ids),
            TxnOffsetCommitResponse,
            self._transactions.check_offsets,
            to=ToCoordinator(member.group),
            newest=None if self._transactions.is_implicit else EXPLICIT_OFFSET_COMMIT,
        )

    async def _end(self, *, commit: bool) -> None:
        request = self._transactions.end_request(commit=commit)
        if request is not None:
            newest = None if self._transactions.is_implicit else EXPLICIT_END_TXN
            await self._ask(request, EndTxnResponse, self._transactions.ended, newest=newest)

    async def _ask(
        self,
        request: Message,
        response_type: type[R],
        check: Callable[[R], None],
        *,
        to: ToCoordinator | None = None,
        newest: int | None = None,
    ) -> None:
        async def attempt() -> None:
            connection = await self._client.connection(to or self._coordinator)
            version = connection.version_of(type(request))
            response = await connection.call(
                request,
                response_type,
                timeout_ms=self._client.request_timeout_ms,
                version=version if newest is None else min(version, newest),
            )
            check(response)

        await self._client.retrying(attempt, retry_on=RETRIABLE)

    @property
    def _coordinator(self) -> ToCoordinator:
        return ToCoordinator(self._transactions.id, KeyType.TRANSACTION)


class Interrupted(KafkaError):
    """The caller was cancelled while a request was in flight."""

    code = ErrorCode.NETWORK_EXCEPTION
