"""Sends sealed batches to their leaders: several requests on the way, repeated until written."""

import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import Final, NamedTuple

from penstock.client.backoff import backoff_ms
from penstock.client.metadata import Topic
from penstock.client.refusal import RETRIABLE, BrokerRefused
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.cluster import Client
from penstock.spark.client.connection import Connection, Ticket
from penstock.spark.sink.batching import Sealed
from penstock.spark.sink.delivery import Answered, firsts, unwritten
from penstock.spark.sink.explicit import explicit
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

REQUEST_BYTES: Final = 4 * 1024 * 1024
IN_FLIGHT: Final = 5
"""Requests to one broker: it knows the last five batches of an idempotent producer."""


class _Sent(NamedTuple):
    connection: Connection
    ticket: Ticket[ProduceResponse]
    batches: Sequence[Sealed]
    names: Mapping[Uuid, str]
    """Of topics, which newer versions name by their ids only."""


class Producer:
    """Used by one thread: `send` as batches become ready, then `finish`.

    An answer that puts a batch off stops the line: all that is on its way is heard first, then
    the rest goes again, a batch a partition at a time. So batches never pass each other.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        transactional_id: str | None = None,
        implicit: bool = True,
        delivery_timeout_ms: int = 120_000,
    ) -> None:
        self._client, self._acks = client, acks
        self._transactional_id, self._implicit = transactional_id, implicit
        self._delivery_timeout_ms = delivery_timeout_ms
        self._line: deque[_Sent] = deque()

    def topic(self, name: str) -> Topic:
        """The topic as it is, made by the broker where it may."""

        def attempt() -> Topic:
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
        waiting = list(batches)
        while waiting:
            now = firsts(waiting)
            sent = {id(batch) for batch in now}
            waiting = [batch for batch in waiting if id(batch) not in sent]
            try:
                leaders = self._client.by_leader(batch.place for batch in now)
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    raise
                self._recover(unsent=[Answered(batch, error.code, str(error)) for batch in now])
                continue
            for leader, places in leaders.items():
                self._send(leader, places, now)

    def finish(self) -> None:
        """Return when all that was sent is written."""
        while self._line:
            self._hear_first()

    def _send(self, leader: BrokerId, places: Sequence[TopicPartition], now: list[Sealed]) -> None:
        led = set(places)
        for batches in requests([batch for batch in now if batch.place in led]):
            try:
                connection = self._client.connection(ToBroker(leader))
                while connection.unanswered >= IN_FLIGHT and self._line:
                    self._hear_first()
                self._line.append(self._asked(connection, batches))
            except KafkaError as error:
                if error.code not in RETRIABLE:
                    raise
                unsent = [Answered(batch, error.code, str(error)) for batch in batches]
                self._recover(unsent=unsent)

    def _asked(self, connection: Connection, batches: Sequence[Sealed]) -> _Sent:
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

    def _hear_first(self) -> None:
        answers = self._heard(self._line.popleft())
        if any(answer.code != ErrorCode.NONE for answer in answers):
            self._recover(heard=answers)

    def _heard(self, sent: _Sent) -> list[Answered]:
        try:
            response = sent.connection.receive(sent.ticket)
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            return [Answered(batch, error.code, str(error)) for batch in sent.batches]
        return answered(response, sent.batches, sent.names)

    def _recover(self, heard: Sequence[Answered] = (), unsent: Sequence[Answered] = ()) -> None:
        """Send again what is left unwritten: by what was heard, is still to come, or never left."""
        deadline = monotonic() + self._delivery_timeout_ms / 1000
        answers = list(heard)
        while self._line:
            answers += self._heard(self._line.popleft())
        answers += unsent  # last: batches of a partition stay in their order
        left, failures = unwritten(answers), 1
        while left:
            if monotonic() > deadline:
                first = next(each for each in answers if each.batch is left[0])
                raise BrokerRefused(
                    first.code,
                    f"rows to {first.batch.place} were not written within "
                    f"kafka.delivery.timeout.ms = {self._delivery_timeout_ms}",
                    first.words,
                )
            if failures:
                self._client.forget()
                sleep(backoff_ms(failures, random.random()) / 1000)  # noqa: S311  only spreads load
            answers = self._round(left)
            before, left = len(left), unwritten(answers)
            failures = 0 if len(left) < before else failures + 1

    def _round(self, left: list[Sealed]) -> list[Answered]:
        """Send the first batch of each partition; what is said of them, and of those behind."""
        now = firsts(left)
        said: dict[int, Answered] = {}
        try:
            leaders = self._client.by_leader(batch.place for batch in now)
            sent = [
                self._asked(self._client.connection(ToBroker(leader)), batches)
                for leader, places in leaders.items()
                for batches in requests([batch for batch in now if batch.place in set(places)])
            ]
        except KafkaError as error:
            if error.code not in RETRIABLE:
                raise
            return [Answered(batch, error.code, str(error)) for batch in left]
        for each in sent:
            said |= {id(answer.batch): answer for answer in self._heard(each)}
        behind = ErrorCode.NETWORK_EXCEPTION
        return [said.get(id(batch)) or Answered(batch, behind) for batch in left]


def requests(batches: Sequence[Sealed]) -> Iterable[list[Sealed]]:
    """Batches of different partitions, as many as a request should hold."""
    held: list[Sealed] = []
    size_bytes = 0
    for batch in batches:
        if held and size_bytes + len(batch.data) > REQUEST_BYTES:
            yield held
            held, size_bytes = [], 0
        held.append(batch)
        size_bytes += len(batch.data)
    if held:
        yield held


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
