"""Sends sealed batches to their leaders: several requests on the way, repeated until written."""

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
from penstock.spark.sink.batching import Sealed
from penstock.spark.sink.delivery import Answered
from penstock.spark.sink.explicit import explicit
from penstock.spark.sink.sending import Pause, Receive, Route, Send, Sending
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)


class _Sent(NamedTuple):
    connection: BlockingConnection
    ticket: SentRequest[ProduceResponse]
    batches: Sequence[Sealed]
    names: Mapping[Uuid, str]
    """Of topics, which newer versions name by their ids only."""


class Producer:
    """Used by one thread: `send` as batches become ready, then `finish`.

    `Sending` decides what is sent when; this does it, and tells what came of it.
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
        self._sending = Sending(delivery_timeout_ms)
        self._line: deque[_Sent] = deque()

    def topic(self, name: str) -> TopicMetadata:
        """The topic as it is, made by the broker where it may."""

        def attempt() -> TopicMetadata:
            return self._client.topic(name, create=True)

        try:
            # The answer that starts a creation says UNKNOWN_TOPIC_OR_PARTITION.
            return self._client.retrying(attempt, retry_on=RETRIABLE)
        except BrokerRefused as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise BrokerRefused(
                    error.code, f"topic {name}", "it does not exist, and the broker makes none"
                ) from None
            raise

    def send(self, batches: Iterable[Sealed]) -> None:
        """Return when all is on its way; `NotWritten` and `DeliveryTimedOut` end the task."""
        self._sending.add(batches)
        self._run(finish=False)

    def finish(self) -> None:
        """Return when all that was sent is written."""
        self._run(finish=True)

    def _run(self, *, finish: bool) -> None:
        while (step := self._sending.step(_now_ms(), finish=finish)) is not None:
            match step:
                case Route(places):
                    self._try(lambda: self._sending.routed(self._client.by_leader(places)))
                case Send():
                    self._try(lambda: self._send(step))
                case Receive():
                    self._hear_first()
                case Pause(failures):
                    self._client.forget()
                    sleep(backoff_ms(failures, random.random()) / 1000)  # noqa: S311  only spreads load
                    self._sending.paused()

    def _send(self, step: Send) -> None:
        connection = self._client.connection(ToBroker(step.leader))
        self._line.append(self._asked(connection, step.batches))
        self._sending.sent()

    def _try(self, attempt: Callable[[], None]) -> None:
        """Only what the attempt meets is put off: what `step` raises ends the task."""
        try:
            attempt()
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            self._sending.put_off(str(error), _now_ms())

    def _hear_first(self) -> None:
        self._sending.heard(self._heard(self._line.popleft()), _now_ms())

    def _asked(self, connection: BlockingConnection, batches: Sequence[Sealed]) -> _Sent:
        if not self._implicit:
            explicit(connection)
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name = batch.place.topic
            if name not in topics:
                topic = self._client.topic(name)
                topics[name] = TopicProduceData(name=name, topic_id=topic.id, partition_data=[])
            data = PartitionProduceData(index=batch.place.partition, records=batch.data)
            topics[name].partition_data.append(data)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._client.settings.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        names = {topic.topic_id: name for name, topic in topics.items()}
        return _Sent(connection, connection.send(request, ProduceResponse), batches, names)

    def _heard(self, sent: _Sent) -> list[Answered]:
        try:
            response = sent.connection.receive(sent.ticket)
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            return [Answered(batch, error.code, str(error)) for batch in sent.batches]
        return answered(response, sent.batches, sent.names)


def _now_ms() -> float:
    return monotonic() * 1000


def answered(
    response: ProduceResponse, batches: Sequence[Sealed], names: Mapping[Uuid, str]
) -> list[Answered]:
    """What the response says of each batch; one that it passes over was not heard of."""
    said = {}
    for topic in response.responses:
        for each in topic.partition_responses:
            place = TopicPartition(topic.name or names.get(topic.topic_id, ""), each.index)
            words = [each.error_message]
            words += [one.batch_index_error_message for one in each.record_errors]
            said[place] = each.error_code, "; ".join(word for word in words if word) or None
    missing = (ErrorCode.UNKNOWN_TOPIC_ID, "the answer does not name it")
    return [Answered(batch, *said.get(batch.place, missing)) for batch in batches]
