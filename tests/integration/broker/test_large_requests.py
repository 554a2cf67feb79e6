"""Requests with very many partitions or topics are answered in turns, with the same results."""

import struct
from collections import Counter
from collections.abc import Coroutine, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from penstock.broker.context import Context, Peer
from penstock.broker.handlers.fetch import MANY_PARTITIONS, fetch
from penstock.broker.handlers.metadata import MANY_TOPICS, metadata
from penstock.broker.handlers.table import HANDLERS as HANDLED
from penstock.broker.handling import turns
from penstock.broker.handling.pieces import in_pieces_each
from penstock.broker.net.large_requests import LARGE_BYTES
from penstock.broker.translate.commits import MOST_OFFSETS
from penstock.errors import ErrorCode
from penstock.log.producer_entry import ProducerEntry
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Uuid
from penstock.wire.apis import api_of
from penstock.wire.client_frame import request_frame
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.wire.messages.alter_configs import AlterConfigsRequest
from penstock.wire.messages.alter_configs import AlterConfigsResource as AlteredResource
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from penstock.wire.messages.describe_groups import (
    DescribeGroupsRequest,
)
from penstock.wire.messages.describe_log_dirs import DescribableLogDirTopic as DirTopic
from penstock.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from penstock.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from penstock.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from penstock.wire.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from penstock.wire.messages.describe_transactions import DescribeTransactionsRequest
from penstock.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.wire.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementallyAltered,
)
from penstock.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.wire.messages.list_transactions import ListTransactionsRequest
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.wire.produce_count import MOST_PARTITIONS
from penstock.wire.schema import Message
from support.brokers.wire_link import WireLink
from support.records.produced_batches import produced

HANDLERS = in_pieces_each(HANDLED)
WAIT_FOR_OTHERS = (
    FindCoordinatorRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    AlterConfigsRequest,
    IncrementalAlterConfigsRequest,
    ElectLeadersRequest,
)
"""Requests that wait for other brokers or for the controller, and so for more than their turns."""
COUNT = 20_000
PRODUCE, FETCH, METADATA = 9, 12, 9
ONE_RECORD = ProduceRequest(
    acks=1,
    timeout_ms=1000,
    topic_data=[
        TopicProduceData(name="t", partition_data=[PartitionProduceData(records=produced())])
    ],
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker whose coordinators have loaded: a refusal would take no turns."""
    with EmbeddedBroker() as running:
        running.create_topic("t")
        with WireLink(running.bootstrap) as client:
            for key_type in (0, 1):
                client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
            while (group := fetched(client.ask(COMMITTED, 9))).error_code:
                assert group.error_code in LOADING
        yield running


def partitions(count: int, *, epoch: int = -1) -> FetchRequest:
    """A fetch of `count` partitions of `t`, of which only the first exists."""
    wanted = [FetchPartition(partition=i, partition_max_bytes=1 << 20) for i in range(count)]
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1 << 20,
        max_bytes=1 << 20,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=wanted)],
    )


def names(count: int) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=f"missing-{i}") for i in range(count)]
    return MetadataRequest(
        topics=[*topics, MetadataRequestTopic(name="t")], allow_auto_topic_creation=False
    )


def spread(count: int) -> list[str]:
    return [f"missing-{i}" for i in range(count)]


LISTED = ListOffsetsRequest(
    replica_id=-1,
    topics=[
        ListOffsetsTopic(
            name="t",
            partitions=[ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(3000)],
        ),
        *(
            ListOffsetsTopic(name=each, partitions=[ListOffsetsPartition(timestamp=-1)])
            for each in spread(3000)
        ),
    ],
)
BY_TIME = replace(
    LISTED, topics=[ListOffsetsTopic("x", [ListOffsetsPartition(0, -1, 5)]), *LISTED.topics]
)
DESCRIBED = DescribeTopicPartitionsRequest(
    topics=[DescribedTopic(name=each) for each in spread(3000)], response_partition_limit=2000
)
ADDED = AddPartitionsToTxnRequest(
    transactions=[
        AddPartitionsToTxnTransaction(
            transactional_id=each, verify_only=True, topics=[AddPartitionsToTxnTopic("t", [0])]
        )
        for each in spread(3000)
    ]
)
MARKED = WriteTxnMarkersRequest(
    markers=[
        WritableTxnMarker(topics=[WritableTxnMarkerTopic(each, [0]) for each in spread(3000)]),
        WritableTxnMarker(topics=[WritableTxnMarkerTopic("t", list(range(3000)))]),
    ]
)
MOVED = AlterReplicaLogDirsRequest(
    [AlterReplicaLogDir("/x", [AlterReplicaLogDirTopic(each, [0]) for each in spread(6000)])]
)
COMMITTED = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(
            "g",
            topics=[
                OffsetFetchRequestTopics(name=each, partition_indexes=[0]) for each in spread(6000)
            ],
        )
    ]
)
LONG: list[tuple[Message, int]] = [
    (DeleteTopicsRequest(topics=[DeleteTopicState(each) for each in spread(3000)]), 6),
    (DeleteTopicsRequest(topic_names=spread(3000)), 5),
    (CreatePartitionsRequest([CreatePartitionsTopic(each, 2) for each in spread(3000)]), 3),
    (AlterConfigsRequest([AlteredResource(2, each) for each in spread(3000)]), 2),
    (
        IncrementalAlterConfigsRequest([IncrementallyAltered(2, each) for each in spread(3000)]),
        1,
    ),
    (LISTED, 7),
    (BY_TIME, 7),
    (
        OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(name=each, partitions=[OffsetCommitRequestPartition()])
                for each in spread(3000)
            ],
        ),
        8,
    ),
    (
        TxnOffsetCommitRequest(
            group_id="g",
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=each, partitions=[TxnOffsetCommitRequestPartition()]
                )
                for each in spread(3000)
            ],
        ),
        3,
    ),
    (
        AddPartitionsToTxnRequest(
            v3_and_below_topics=[AddPartitionsToTxnTopic(each, [0]) for each in spread(3000)]
        ),
        3,
    ),
    (ElectLeadersRequest(0, [TopicPartitions(each, [0]) for each in spread(3000)]), 2),
    (
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(each, [OffsetForLeaderPartition(0, -1, 1)])
                for each in spread(6000)
            ]
        ),
        4,
    ),
    (
        DeleteRecordsRequest(
            timeout_ms=100,
            topics=[
                DeleteRecordsTopic("t", [DeleteRecordsPartition(0, 0)]),
                *(
                    DeleteRecordsTopic(each, [DeleteRecordsPartition(0, 1)])
                    for each in spread(6000)
                ),
            ],
        ),
        2,
    ),
    (DescribeProducersRequest([TopicRequest(each, [0]) for each in spread(6000)]), 0),
    (DescribeGroupsRequest(spread(3000)), 5),
    (ConsumerGroupDescribeRequest(spread(3000)), 0),
    (DeleteGroupsRequest(spread(3000)), 2),
    (DescribeTransactionsRequest(spread(3000)), 0),
    (FindCoordinatorRequest(coordinator_keys=spread(3000)), 4),
    (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(each) for each in spread(3000)]), 9),
    (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(2, each) for each in spread(3000)]
        ),
        4,
    ),
]


LOADING = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def fetched(response: Message) -> OffsetFetchResponseGroup:
    assert isinstance(response, OffsetFetchResponse)
    (group,) = response.groups
    return group


def test_many_topics_of_one_group_are_answered_together(broker: EmbeddedBroker) -> None:
    with WireLink(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        while (group := fetched(client.ask(COMMITTED, 9))).error_code:
            assert group.error_code in LOADING
    assert [each.name for each in group.topics] == spread(6000)


@pytest.mark.parametrize("version", [1, 7, 9])
def test_many_partitions_of_groups_are_answered_in_request_order(
    broker: EmbeddedBroker, version: int
) -> None:
    """Also where the list is split: inside a topic, between two, and at one without partitions."""
    named = [("a", 498), ("b", 1), ("c", 0), ("d", 1201), ("e", 499), ("f", 499), ("g", 0)]
    if version < 8:
        one = [OffsetFetchRequestTopic(name, list(range(count))) for name, count in named]
        request = OffsetFetchRequest(group_id="g", topics=one)
    else:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(range(count)))
            for name, count in named
        ]
        groups = [OffsetFetchRequestGroup(each, topics=topics) for each in ("g", "h")]
        request = OffsetFetchRequest(groups=groups)
    with WireLink(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4)
        while True:
            response = client.ask(request, version)
            assert isinstance(response, OffsetFetchResponse)
            answers: list[Any] = [*response.groups] if version >= 8 else [response]
            codes = {each.error_code for each in answers} | {
                part.error_code
                for each in answers
                for topic in each.topics
                for part in topic.partitions
            }
            if codes == {0}:
                break
            assert codes <= {0, *LOADING}
    for each in answers:
        assert [
            (topic.name, [part.partition_index for part in topic.partitions])
            for topic in each.topics
        ] == [(name, list(range(count))) for name, count in named]


def test_many_replicas_that_cannot_move_are_all_refused(broker: EmbeddedBroker) -> None:
    with WireLink(broker.bootstrap) as client:
        response = client.ask(MOVED, 2)
    assert isinstance(response, AlterReplicaLogDirsResponse)
    assert [each.topic_name for each in response.results] == spread(6000)


def test_new_topics_beyond_the_request_limit_are_refused_one_by_one(
    broker: EmbeddedBroker,
) -> None:
    topics = [
        CreatableTopic(each, num_partitions=1, replication_factor=1) for each in spread(COUNT)
    ]
    with WireLink(broker.bootstrap) as client:
        response = client.ask(CreateTopicsRequest(topics=topics), 7)
    assert isinstance(response, CreateTopicsResponse)
    assert [each.name for each in response.topics] == spread(COUNT)
    assert {each.error_code for each in response.topics} == {ErrorCode.POLICY_VIOLATION}


def test_a_topic_named_twice_far_apart_is_not_deleted(broker: EmbeddedBroker) -> None:
    """Once by name and once by id: a topic that is named twice must not be deleted."""
    topic_id = broker.running.services.cluster.image.topics["t"].id
    topics = [
        DeleteTopicState("t"),
        *(DeleteTopicState(each) for each in spread(1000)),
        DeleteTopicState(None, topic_id),
    ]
    with WireLink(broker.bootstrap) as client:
        response = client.ask(DeleteTopicsRequest(topics=topics), 6)
    assert isinstance(response, DeleteTopicsResponse)
    (reported,) = (each for each in response.responses if each.name == "t")
    assert reported.error_code == ErrorCode.INVALID_REQUEST
    assert "t" in broker.running.services.cluster.image.topics


AGAIN: list[tuple[Message, int]] = [
    (DeleteGroupsRequest(["again", *spread(1000), "again", "again"]), 2),
    (AlterConfigsRequest([AlteredResource(2, e) for e in ["t", *spread(1000), "t", "t"]]), 2),
    (
        IncrementalAlterConfigsRequest(
            [IncrementallyAltered(2, each) for each in ["t", *spread(1000), *["t"] * 400]]
        ),
        1,
    ),
    (
        DeleteTopicsRequest(
            topics=[
                DeleteTopicState("again", Uuid(b"i" * 16)),
                DeleteTopicState("again", Uuid(b"j" * 16)),
                *(DeleteTopicState(each) for each in spread(1000)),
                DeleteTopicState("again"),
            ]
        ),
        6,
    ),
]


@pytest.mark.parametrize(("request_", "version"), AGAIN, ids=[type(r).__name__ for r, _ in AGAIN])
def test_duplicates_across_pieces_are_answered_as_in_one_piece(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, request_: Message, version: int
) -> None:
    def reported() -> Counter[str]:
        with WireLink(broker.bootstrap) as client:
            [results] = parts(client.ask(request_, version))
        return Counter(map(repr, results))

    in_pieces = reported()
    monkeypatch.setattr(turns, "NAMES_A_PIECE", 1 << 30)
    assert in_pieces == reported()


def test_duplicate_names_are_described_only_once(broker: EmbeddedBroker) -> None:
    """A description is many times as long as a name: a small request would fill the memory."""
    services, many = broker.running.services, 100
    topic_id, broker_id = services.cluster.image.topics["t"].id, str(services.broker_id)
    requests: list[tuple[Message, int]] = [
        (DescribeConfigsRequest([DescribeConfigsResource(4, broker_id, None)] * many), 4),
        (DescribeGroupsRequest(["g"] * many), 5),
        (ConsumerGroupDescribeRequest(["g"] * many), 0),
        (DescribeTransactionsRequest(["i"] * many), 0),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g")] * many), 9),
        (
            MetadataRequest([MetadataRequestTopic(topic_id, f"{n}") for n in range(many)]),
            12,
        ),
    ]
    with WireLink(broker.bootstrap) as client:
        for request, version in requests:
            *_, results = parts(client.ask(request, version))
            assert 1 <= len(results) <= 2, request
        producers = client.ask(DescribeProducersRequest([TopicRequest("t", [0] * 3)] * many), 0)
    assert isinstance(producers, DescribeProducersResponse)
    assert [len(each.partitions) for each in producers.topics] == [1, *[0] * (many - 1)]


class Key(str):
    """Counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Key.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_very_many_setting_names_are_not_compared_one_by_one(broker: EmbeddedBroker) -> None:
    services, count = broker.running.services, 1000
    resource = DescribeConfigsResource(
        4, str(services.broker_id), [Key(f"no.{n}") for n in range(count)]
    )
    header = RequestHeader(api_of(DescribeConfigsRequest), 4, 1, "")
    ctx = Context(header, 4, Peer("PLAINTEXT", "127.0.0.1", 1), 0, services)
    response: Any = HANDLERS[32](DescribeConfigsRequest([resource]), ctx)
    assert response.results[0].configs == []
    assert Key.compared < count


@pytest.mark.parametrize(("request_", "version"), LONG, ids=[type(r).__name__ for r, _ in LONG])
def test_a_response_in_turns_has_the_entries_of_the_request(
    broker: EmbeddedBroker, request_: Message, version: int
) -> None:
    """Each list of the response has one entry per entry of the request, in the same order."""
    with WireLink(broker.bootstrap) as client:
        response = client.ask(request_, version)
    [asked] = [each for each in parts(request_) if len(each) >= 3000]
    [reported] = [each for each in parts(response) if len(each) >= 3000]
    assert [name_of(each) for each in reported] == [name_of(each) for each in asked]


def parts(message: Message) -> list[list[Any]]:
    return [each for each in msgspec.structs.astuple(message) if isinstance(each, list)]


def name_of(item: Any) -> str:
    if isinstance(item, str):
        return item
    names = ("name", "topic", "group_id", "key", "transactional_id", "resource_name")
    return next(str(getattr(item, each)) for each in names if hasattr(item, each))


def test_offsets_too_many_for_one_write_are_refused_before_records_are_built(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def commits(count: int) -> OffsetCommitRequest:
        parts = [OffsetCommitRequestPartition(committed_offset=i) for i in range(count)]
        topic = OffsetCommitRequestTopic(name="t", partitions=parts)
        return OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])

    def reported(response: Message) -> set[int]:
        assert isinstance(response, OffsetCommitResponse)
        return {each.error_code for topic in response.topics for each in topic.partitions}

    groups = broker.running.services.coordination.groups
    with WireLink(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        while reported(few := client.ask(commits(3000), 8)) != {ErrorCode.NONE}:
            assert reported(few) < LOADING
        monkeypatch.setattr(groups, "commit", None)
        for count in (MOST_OFFSETS + 1, 100_000):
            many = client.ask(commits(count), 8)
            assert reported(many) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}


def test_one_missing_partition_among_many_keeps_all_out_of_a_transaction(
    broker: EmbeddedBroker,
) -> None:
    topics = [AddPartitionsToTxnTopic("t", [0]), AddPartitionsToTxnTopic("t", list(range(1000)))]
    with WireLink(broker.bootstrap) as client:
        response = client.ask(AddPartitionsToTxnRequest(v3_and_below_topics=topics), 3)
    assert isinstance(response, AddPartitionsToTxnResponse)
    one, many = (
        [each.partition_error_code for each in topic.results_by_partition]
        for topic in response.results_by_topic_v3_and_below
    )
    unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 999
    assert one == [ErrorCode.OPERATION_NOT_ATTEMPTED]
    assert many == [ErrorCode.OPERATION_NOT_ATTEMPTED, *unknown]


def test_transactions_and_markers_in_turns_are_all_answered(broker: EmbeddedBroker) -> None:
    with WireLink(broker.bootstrap) as client:
        added, marked = client.ask(ADDED, 5), client.ask(MARKED, 1)
    assert isinstance(added, AddPartitionsToTxnResponse)
    assert isinstance(marked, WriteTxnMarkersResponse)
    assert [each.transactional_id for each in added.results_by_transaction] == spread(3000)
    first, second = marked.markers
    assert [each.name for each in first.topics] == spread(3000)
    ((led, *others),) = (each.partitions for each in second.topics)
    assert led.error_code == ErrorCode.NONE
    assert {each.error_code for each in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_very_many_partitions_are_fetched(broker: EmbeddedBroker) -> None:
    request = partitions(COUNT)
    assert len(request_frame(api_of(FetchRequest), FETCH, 1, "", request)) > LARGE_BYTES
    with WireLink(broker.bootstrap) as client:
        for records in (b"", b"v1"):
            response = client.ask(request, FETCH)
            assert isinstance(response, FetchResponse)
            (topic,) = response.responses
            first, *others = topic.partitions
            found = first.records
            assert isinstance(found, bytes | memoryview)
            assert records in bytes(found)
            assert first.error_code == ErrorCode.NONE
            assert len(others) == COUNT - 1
            assert {e.error_code for e in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            client.ask(ONE_RECORD, PRODUCE)


def test_very_many_topics_are_described(broker: EmbeddedBroker) -> None:
    request = names(COUNT)
    assert len(request_frame(api_of(MetadataRequest), METADATA, 1, "", request)) > LARGE_BYTES
    with WireLink(broker.bootstrap) as client:
        response = client.ask(request, METADATA)
    assert isinstance(response, MetadataResponse)
    codes = [each.error_code for each in response.topics]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * COUNT + [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("handler", "request_", "version", "turns"),
    [
        (fetch, partitions(MANY_PARTITIONS + 1), FETCH, 30),
        (fetch, partitions(MANY_PARTITIONS + 1, epoch=0), FETCH, 30),
        (metadata, names(MANY_TOPICS), METADATA, 4),
        (HANDLERS[24], ADDED, 5, 10),
        (HANDLERS[75], DESCRIBED, 0, 5),
        (HANDLERS[27], MARKED, 1, 10),
        (HANDLERS[34], MOVED, 2, 10),
        (HANDLERS[9], COMMITTED, 9, 10),
        (HANDLERS[35], DescribeLogDirsRequest([DirTopic("t", list(range(60_000)))]), 4, 10),
        (HANDLERS[66], ListTransactionsRequest(state_filters=spread(100_000)), 1, 30),
        *(
            (HANDLERS[api_of(type(each)).key], each, version, 10)
            for each, version in LONG
            if not isinstance(each, WAIT_FOR_OTHERS)
        ),
    ],
)
def test_other_requests_get_turns_in_between(
    broker: EmbeddedBroker, handler: Any, request_: Message, version: int, turns: int
) -> None:
    header = RequestHeader(api_of(type(request_)), version, 1, "")
    peer = Peer("PLAINTEXT", "127.0.0.1", 1)
    work = handler(request_, Context(header, version, peer, 0, broker.running.services))
    assert isinstance(work, Coroutine)
    for _ in range(turns):
        work.send(None)
    work.close()


def test_very_many_producers_of_one_partition_are_described_in_turns(
    broker: EmbeddedBroker,
) -> None:
    partition = broker.running.services.replicas.partitions.get("t", 0)
    request = DescribeProducersRequest([TopicRequest("t", [0])])
    header = RequestHeader(api_of(DescribeProducersRequest), 0, 1, "")
    context = Context(header, 0, Peer("PLAINTEXT", "127.0.0.1", 1), 0, broker.running.services)
    known = partition.log.producers.producers
    added = {number: ProducerEntry(number, 0) for number in range(1 << 40, (1 << 40) + 60_000)}
    known.update(added)
    try:
        work = HANDLERS[61](request, context)
        assert isinstance(work, Coroutine)
        turns, response = 0, None
        while response is None:
            try:
                work.send(None)
                turns += 1
            except StopIteration as end:
                response = end.value
        (told,) = response.topics[0].partitions
        assert turns > 10
        assert added.keys() <= {each.producer_id for each in told.active_producers}
    finally:
        for number in added:
            del known[number]


def produced_to(count: int) -> ProduceRequest:
    """A produce request for `count` partitions of `t`, of which only the first exists; every tenth
    has a record.
    """
    parts = [
        PartitionProduceData(index=i, records=None if i % 10 else produced()) for i in range(count)
    ]
    return replace(ONE_RECORD, topic_data=[TopicProduceData(name="t", partition_data=parts)] * 2)


def test_very_many_partitions_are_produced_to_in_turns(broker: EmbeddedBroker) -> None:
    """Each batch is written once, in the order of the request."""
    request = produced_to(3000)
    header = RequestHeader(api_of(ProduceRequest), PRODUCE, 1, "")
    context = Context(
        header, PRODUCE, Peer("PLAINTEXT", "127.0.0.1", 1), 0, broker.running.services
    )
    refused = replace(request, acks=7)
    work = HANDLERS[0](refused, context)
    assert isinstance(work, Coroutine)
    for _ in range(10):
        work.send(None)
    work.close()
    with WireLink(broker.bootstrap) as client:
        before = client.ask(ONE_RECORD, PRODUCE)
        response = client.ask(request, PRODUCE)
    assert isinstance(before, ProduceResponse)
    assert isinstance(response, ProduceResponse)
    last = before.responses[0].partition_responses[0].base_offset
    firsts = [topic.partition_responses[0].base_offset for topic in response.responses]
    assert firsts == [last + 3, last + 6]  # batches of three records
    for topic in response.responses:
        assert [each.index for each in topic.partition_responses] == list(range(3000))
        codes = {each.error_code for each in topic.partition_responses[1:]}
        assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_produce_request_with_absurdly_many_partitions_closes_its_connection(
    broker: EmbeddedBroker,
) -> None:
    parts = [PartitionProduceData(index=i, records=None) for i in range(MOST_PARTITIONS + 1)]
    request = replace(ONE_RECORD, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    with WireLink(broker.bootstrap) as client, pytest.raises((struct.error, ConnectionError)):
        client.ask(request, PRODUCE)


def test_a_fetch_session_with_too_many_partitions_is_ended(broker: EmbeddedBroker) -> None:
    with WireLink(broker.bootstrap) as client:
        began = client.ask(replace(partitions(1, epoch=0), max_wait_ms=0), FETCH)
        assert isinstance(began, FetchResponse)
        more = replace(partitions(COUNT, epoch=1), session_id=began.session_id)
        ended = client.ask(more, FETCH)
        assert isinstance(ended, FetchResponse)
        assert ended.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
