"""Sends sealed batches to their leaders: several requests in flight, retried until written."""

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import NamedTuple

from penstock.client.backoff import backoff_ms
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.client.metadata import TopicMetadata
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.client.connection import BlockingConnection, SentRequest
from penstock.spark.sink.accumulator import SealedBatch
from penstock.spark.sink.delivery import BatchResponse
from penstock.spark.sink.explicit_transactions import use_explicit_versions
from penstock.spark.sink.sender import BackOff, FindLeaders, ReceiveResponse, SendBatches, Sender
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


class _SentBatches(NamedTuple):
    connection: BlockingConnection
    request: SentRequest[ProduceResponse]
    batches: Sequence[SealedBatch]
    names: Mapping[Uuid, str]
    """Topic names by id: newer versions of the response have only ids."""


class SinkProducer:
    """Used by one thread: `send` as batches become ready, then `finish`.

    `Sender` decides each step; the producer takes it and reports the result.
    """

    def __init__(
        self,
        client: BlockingClient,
        *,
        acks: int = -1,
        transactional_id: str | None = None,
        implicit: bool = True,
        delivery_timeout_ms: int = 120_000,
    ) -> None:
        self._client, self._acks = client, acks
        self._transactional_id, self._implicit = transactional_id, implicit
        self._sender = Sender(delivery_timeout_ms)
        self._in_flight: deque[_SentBatches] = deque()

    def topic(self, name: str) -> TopicMetadata:
        """The topic's metadata; the broker creates a missing topic if its settings allow."""

        def attempt() -> TopicMetadata:
            return self._client.topic(name, create=True)

        try:
            # The response that starts a creation has UNKNOWN_TOPIC_OR_PARTITION.
            return self._client.retrying(attempt, retry_on=RETRIABLE)
        except BrokerRefused as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise BrokerRefused(
                    error.code,
                    f"topic {name}",
                    "it does not exist, and the broker does not create it",
                ) from None
            raise

    def send(self, batches: Iterable[SealedBatch]) -> None:
        """Return when all batches are sent; `NotWritten` and `DeliveryTimedOut` end the task."""
        self._sender.add(batches)
        self._run(finish=False)

    def finish(self) -> None:
        """Return when all batches are written."""
        self._run(finish=True)

    def _run(self, *, finish: bool) -> None:
        while (step := self._sender.step(_now_ms(), finish=finish)) is not None:
            match step:
                case FindLeaders(partitions):
                    self._try(
                        lambda: self._sender.leaders_found(self._client.by_leader(partitions))
                    )
                case SendBatches():
                    self._try(lambda: self._send(step))
                case ReceiveResponse():
                    self._receive_oldest()
                case BackOff(failures):
                    self._client.forget()
                    sleep(backoff_ms(failures, random.random()) / 1000)  # noqa: S311  only spreads load
                    self._sender.backed_off()

    def _send(self, step: SendBatches) -> None:
        connection = self._client.connection(ToBroker(step.leader))
        self._in_flight.append(self._request(connection, step.batches))
        self._sender.sent()

    def _try(self, attempt: Callable[[], None]) -> None:
        """Retry what fails inside the attempt; errors that `step` raises end the task."""
        try:
            attempt()
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self._sender.failed(str(error), _now_ms())

    def _receive_oldest(self) -> None:
        self._sender.received(self._received(self._in_flight.popleft()), _now_ms())

    def _request(
        self, connection: BlockingConnection, batches: Sequence[SealedBatch]
    ) -> _SentBatches:
        if not self._implicit:
            use_explicit_versions(connection)
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name = batch.topic_partition.topic
            if name not in topics:
                topic = self._client.topic(name)
                topics[name] = TopicProduceData(name=name, topic_id=topic.id, partition_data=[])
            data = PartitionProduceData(index=batch.topic_partition.partition, records=batch.data)
            topics[name].partition_data.append(data)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._client.settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        names = {topic.topic_id: name for name, topic in topics.items()}
        return _SentBatches(connection, connection.send(request, ProduceResponse), batches, names)

    def _received(self, sent: _SentBatches) -> list[BatchResponse]:
        try:
            response = sent.connection.receive(sent.request)
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            return [BatchResponse(batch, error.code, str(error)) for batch in sent.batches]
        return batch_responses(response, sent.batches, sent.names)


def _now_ms() -> float:
    return monotonic() * 1000


def batch_responses(
    response: ProduceResponse, batches: Sequence[SealedBatch], names: Mapping[Uuid, str]
) -> list[BatchResponse]:
    """The response to each batch; a batch that it leaves out is retried."""
    found = {}
    for topic in response.responses:
        for each in topic.partition_responses:
            tp = TopicPartition(topic.name or names.get(topic.topic_id, ""), each.index)
            messages = [each.error_message]
            messages += [one.batch_index_error_message for one in each.record_errors]
            found[tp] = each.error_code, "; ".join(filter(None, messages)) or None
    missing = (ErrorCode.UNKNOWN_TOPIC_ID, "the response does not name it")
    return [BatchResponse(batch, *found.get(batch.topic_partition, missing)) for batch in batches]
