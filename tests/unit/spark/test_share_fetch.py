"""Requests of a share group member to several brokers: one is unreachable, or partitions move."""

from penstock.client.errors import ConnectionFailed
from penstock.client.route import Route, ToBroker
from penstock.client.share_session import FetchLimits
from penstock.spark.client.settings import ClientSettings
from penstock.spark.source.share.consumer import SparkShareConsumer
from penstock.spark.source.share.held_records import IdentifiedRecords
from penstock.spark.source.share.offset_ranges import parse_ranges
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.share_acknowledge import PartitionData as AcknowledgedPartition
from penstock.wire.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from penstock.wire.messages.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

TOPIC = Uuid(b"o" * 16)
FIRST, SECOND, THIRD = (TopicPartition("orders", index) for index in range(3))


class AnsweringBroker:
    """A connection to a broker that locks ten records of its partition; it may break."""

    def __init__(self, partition: int, *, is_broken: bool = False) -> None:
        self.partition, self.is_broken, self.is_closed = partition, is_broken, False
        self.versions = {79: 2}
        self.accepted: list[tuple[int, int, int]] = []

    def send(self, request: ShareFetchRequest, _: type[ShareFetchResponse]) -> ShareFetchRequest:
        if self.is_broken:
            raise ConnectionFailed("the broker has closed the connection")
        return request

    def receive(self, _: ShareFetchRequest, *, timeout_ms: int) -> ShareFetchResponse:
        assert timeout_ms > 0
        part = PartitionData(self.partition, acquired_records=[AcquiredRecords(0, 9, 1)])
        return ShareFetchResponse(responses=[ShareFetchableTopicResponse(TOPIC, [part])])

    def call(
        self, request: ShareAcknowledgeRequest, _: type[ShareAcknowledgeResponse]
    ) -> ShareAcknowledgeResponse:
        given = [
            (part, each)
            for topic in request.topics
            for part in topic.partitions
            for each in part.acknowledgement_batches
        ]
        self.accepted += [
            (part.partition_index, each.first_offset, each.last_offset) for part, each in given
        ]
        parts = [AcknowledgedPartition(part.partition_index) for part, _ in given]
        return ShareAcknowledgeResponse(responses=[ShareAcknowledgeTopicResponse(TOPIC, parts)])

    def close(self) -> None:
        self.is_closed = True


class ThreeBrokers:
    """A client of a cluster in which each broker leads one partition, and the second is
    unreachable.
    """

    settings = ClientSettings(())

    def __init__(self) -> None:
        self.open = {1: AnsweringBroker(0), 3: AnsweringBroker(2)}
        self.led = {BrokerId(1): [FIRST], BrokerId(2): [SECOND], BrokerId(3): [THIRD]}

    def by_leader(self, _: object) -> dict[BrokerId, list[TopicPartition]]:
        return self.led

    def connection(self, to: Route) -> AnsweringBroker:
        assert isinstance(to, ToBroker)
        if to.id not in self.open:
            raise ConnectionFailed(f"cannot connect to broker {to.id}")
        return self.open[to.id]


def member(brokers: ThreeBrokers) -> SparkShareConsumer:
    consumer = SparkShareConsumer(ClientSettings(()), "billing", ("orders",), 1000)
    consumer._client = brokers  # type: ignore[assignment]
    consumer._held.identify("orders", TOPIC)
    return consumer


def fetched(consumer: SparkShareConsumer) -> int:
    with consumer._guard:
        return consumer._fetch_once(FetchLimits(records=500, wait_ms=0))


def test_an_unreachable_broker_does_not_hide_records_locked_on_others() -> None:
    consumer = member(ThreeBrokers())
    assert fetched(consumer) == 20
    assert consumer._held.locked() == {FIRST: parse_ranges("0-9"), THIRD: parse_ranges("0-9")}


def test_a_broken_connection_ends_its_own_session_only() -> None:
    brokers = ThreeBrokers()
    consumer = member(brokers)
    fetched(consumer)
    brokers.open[1].is_broken = True
    assert fetched(consumer) == 10
    assert brokers.open[1].is_closed
    assert consumer._held.locked() == {THIRD: parse_ranges("0-9")}


def test_records_of_a_partition_that_went_to_another_member_are_accepted() -> None:
    """They are locked, and this member processes them."""
    brokers = ThreeBrokers()
    consumer = member(brokers)
    fetched(consumer)
    brokers.led = {BrokerId(1): [SECOND], BrokerId(3): [THIRD]}
    fetched(consumer)
    consumer._held.finished(IdentifiedRecords({FIRST: parse_ranges("0-9")}, {"orders": TOPIC}))
    with consumer._guard:
        consumer._accept_once()
    assert brokers.open[1].accepted == [(0, 0, 9)]
    assert consumer._held.locked() == {THIRD: parse_ranges("0-9")}


def test_what_a_former_leader_had_locked_is_lost() -> None:
    """The new leader knows of no lock, and hands it out to anybody."""
    brokers = ThreeBrokers()
    consumer = member(brokers)
    fetched(consumer)
    brokers.led = {BrokerId(3): [FIRST, THIRD]}
    fetched(consumer)
    assert consumer._held.locked() == {THIRD: parse_ranges("0-9")}
