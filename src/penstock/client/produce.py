"""Producers without transactions: the idempotent one, and one that may write duplicates."""

from collections.abc import Iterable

from penstock.client.cluster import Client
from penstock.client.errors import RETRIABLE, BrokerRefused, check
from penstock.client.producer_session import Acks, ProducerSession
from penstock.client.record_sender import (
    BATCH_BYTES,
    ProducedRecord,
    ProducerRecord,
    RecordSender,
)
from penstock.clock import Clock
from penstock.record.compression import Codec
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

__all__ = [
    "Acks",
    "IdempotentProducer",
    "PlainProducer",
    "ProducedRecord",
    "ProducerRecord",
    "all_written",
]

NO_TRANSACTION_MS = 60_000


class IdempotentProducer:
    """acks=all, and no duplicates. Only one task may send at a time.

    After a failure the next `send` gets a new producer id.
    """

    def __init__(
        self,
        client: Client,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        create_topics: bool = False,
        batch_bytes: int = BATCH_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._sender = RecordSender(
            client,
            codec=codec,
            level=level,
            create_topics=create_topics,
            batch_bytes=batch_bytes,
            clock=clock,
        )
        self._session: ProducerSession | None = None

    async def send(self, records: Iterable[ProducerRecord]) -> list[ProducedRecord]:
        """Write the records, in order within each partition; returns when all are written."""
        return all_written(await self.deliver(records))

    async def deliver(
        self, records: Iterable[ProducerRecord], *, past_refused: bool = False
    ) -> list[ProducedRecord | BrokerRefused | None]:
        """The result of each record: see `RecordSender.deliver`."""
        session, self._session = self._session, None
        if session is None:
            session = await self._new_session()
        results = await self._sender.deliver(records, session, past_refused=past_refused)
        self._session = session  # not before: after a failure its sequences are unknown
        return results

    async def _new_session(self) -> ProducerSession:
        response = await self._client.call(
            InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=NO_TRANSACTION_MS),
            InitProducerIdResponse,
            check=lambda response: check(response.error_code, "producer id"),
            retry_on=RETRIABLE,
        )
        return ProducerSession(response.producer_id, response.producer_epoch)


class PlainProducer:
    """Any acks, without a producer id: a retry may write a record twice."""

    def __init__(
        self,
        client: Client,
        *,
        acks: Acks = Acks.LEADER,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        create_topics: bool = False,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._sender = RecordSender(
            client,
            codec=codec,
            level=level,
            create_topics=create_topics,
            batch_bytes=batch_bytes,
            acks=acks,
        )

    async def deliver(
        self, records: Iterable[ProducerRecord], *, past_refused: bool = False
    ) -> list[ProducedRecord | BrokerRefused | None]:
        """The result of each record: see `RecordSender.deliver`. With acks=0 nothing answers."""
        return await self._sender.deliver(records, ProducerSession(), past_refused=past_refused)


def all_written(results: Iterable[ProducedRecord | BrokerRefused | None]) -> list[ProducedRecord]:
    """The metadata of every record; raises the first refusal."""
    written = []
    for result in results:
        if not isinstance(result, ProducedRecord):
            assert result is not None, "an error precedes the records skipped for it"
            raise result
        written.append(result)
    return written
