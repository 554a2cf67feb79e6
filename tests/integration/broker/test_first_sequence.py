"""The first batches of a transaction, sent without waiting for each other's response."""

from peers.process import wait_until
from penstock.errors import ErrorCode
from penstock.record.build import build_batch
from penstock.record.record import Record
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.brokers.wire_link import WireLink

ADDS_PARTITIONS = 12
"""From this version on, the first write adds its partition to the transaction (KIP-890)."""


def initialised(link: WireLink) -> InitProducerIdResponse:
    """Initialises a producer; looking for its coordinator first creates the coordinator's topic."""
    link.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), version=4)
    made: list[InitProducerIdResponse] = []

    def succeeds() -> bool:
        answer = link.ask(
            InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), version=4
        )
        assert isinstance(answer, InitProducerIdResponse)
        made.append(answer)
        return answer.error_code == ErrorCode.NONE

    wait_until(succeeds, 60, "the transaction coordinator")
    return made[-1]


def created(link: WireLink) -> None:
    topic = MetadataRequestTopic(name="t")
    link.ask(MetadataRequest(topics=[topic], allow_auto_topic_creation=True), version=9)


def produced(
    link: WireLink, made: InitProducerIdResponse, sequence: int, version: int, at_ms: int = 1000
) -> ErrorCode:
    batch = build_batch(
        [Record(0, at_ms, None, b"v", [])],
        producer_id=made.producer_id,
        producer_epoch=made.producer_epoch,
        base_sequence=sequence,
        transactional=True,
    )
    data = PartitionProduceData(index=0, records=bytes(batch))
    answer = link.ask(
        ProduceRequest(
            transactional_id="x",
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name="t", partition_data=[data])],
        ),
        version,
    )
    assert isinstance(answer, ProduceResponse)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def added(link: WireLink, made: InitProducerIdResponse) -> None:
    answer = link.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=made.producer_id,
            v3_and_below_producer_epoch=made.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
        ),
        version=3,
    )
    assert isinstance(answer, AddPartitionsToTxnResponse)
    (topic,) = answer.results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.NONE


def test_a_second_batch_cannot_start_a_partition_before_the_first() -> None:
    """The first batch may be refused while the previous transaction completes, and is then sent
    again: the second batch must not have taken its place.
    """
    with EmbeddedBroker() as broker, WireLink(broker.bootstrap) as link:
        created(link)
        made = initialised(link)
        assert produced(link, made, 1, ADDS_PARTITIONS) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        codes = [produced(link, made, each, ADDS_PARTITIONS) for each in (0, 1, 2)]
        assert codes == [ErrorCode.NONE] * 3
        ended = link.ask(
            EndTxnRequest("x", made.producer_id, made.producer_epoch, committed=True), version=5
        )
        assert isinstance(ended, EndTxnResponse)
        assert ended.error_code == ErrorCode.NONE


def test_a_batch_behind_a_refused_one_waits_where_clients_add_the_partitions() -> None:
    """Their sequences need not begin at 0."""
    with EmbeddedBroker() as broker, WireLink(broker.bootstrap) as link:
        created(link)
        made = initialised(link)
        version = ADDS_PARTITIONS - 1
        assert produced(link, made, 7, version) == ErrorCode.TRANSACTION_ABORTABLE
        added(link, made)
        assert produced(link, made, 8, version) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        codes = [produced(link, made, each, version) for each in (7, 8)]
        assert codes == [ErrorCode.NONE] * 2


def test_a_batch_waits_for_one_that_was_verified_and_then_refused() -> None:
    """As by too few replicas: a later check, after that of the transaction."""
    version, future_ms = ADDS_PARTITIONS - 1, 1 << 60
    with EmbeddedBroker() as broker, WireLink(broker.bootstrap) as link:
        created(link)
        made = initialised(link)
        added(link, made)
        assert produced(link, made, 7, version, future_ms) == ErrorCode.INVALID_TIMESTAMP
        assert produced(link, made, 8, version) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        codes = [produced(link, made, each, version) for each in (7, 8)]
        assert codes == [ErrorCode.NONE] * 2
