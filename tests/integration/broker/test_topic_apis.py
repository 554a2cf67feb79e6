"""CreateTopics, DeleteTopics, CreatePartitions and the requests that describe topics, over a
socket.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.clock import SystemClock
from penstock.errors import ErrorCode
from penstock.metadata.store import Create
from penstock.metadata.tree import Tree
from penstock.testing.broker import EmbeddedBroker
from penstock.types import Uuid
from penstock.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from support.brokers.wire_link import WireLink


@pytest.fixture
def link() -> Iterator[WireLink]:
    with EmbeddedBroker(settings={"broker.id": "0"}) as broker, WireLink(broker.bootstrap) as link:
        yield link


def create(link: WireLink, *topics: CreatableTopic, version: int = 7) -> list[CreatableTopicResult]:
    response = link.ask(CreateTopicsRequest(topics=list(topics)), version)
    assert isinstance(response, CreateTopicsResponse)
    return response.topics


def topic(name: str, partitions: int = 1, factor: int = 1) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)


def delete(link: WireLink, *states: DeleteTopicState) -> dict[tuple[str | None, bool], int]:
    """Error codes by name and by whether the response has an id."""
    response = link.ask(DeleteTopicsRequest(topics=list(states)))
    assert isinstance(response, DeleteTopicsResponse)
    assert all(
        (each.error_message is None) == (each.error_code == 0) for each in response.responses
    )
    return {(each.name, any(each.topic_id)): each.error_code for each in response.responses}


def test_a_new_topic_is_returned_with_its_settings(link: WireLink) -> None:
    new = CreatableTopic(
        name="t",
        num_partitions=2,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name="retention.ms", value="5000")],
    )
    (made,) = create(link, new)
    assert (made.error_code, made.error_message) == (0, None)
    assert (made.num_partitions, made.replication_factor) == (2, 1)
    assert any(made.topic_id)
    configs = {each.name: (each.value, each.config_source) for each in made.configs or ()}
    assert configs["retention.ms"] == ("5000", 1)
    assert configs["segment.bytes"] == ("1073741824", 5)
    assert list(configs) == sorted(configs)


def test_each_topic_gets_a_result_and_duplicates_only_one(link: WireLink) -> None:
    results = create(link, topic("a"), topic("b"), topic("a"), topic("no good"), topic("c", 0))
    assert [(each.name, each.error_code) for each in results] == [
        ("b", ErrorCode.NONE),
        ("no good", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("c", ErrorCode.INVALID_PARTITIONS),
        ("a", ErrorCode.INVALID_REQUEST),
    ]


def test_a_request_for_too_many_partitions_is_refused_as_a_whole(link: WireLink) -> None:
    results = create(link, topic("a", 10_000), topic("b"))
    assert {each.error_code for each in results} == {ErrorCode.POLICY_VIOLATION}


def test_topics_are_deleted_by_name_and_by_id(link: WireLink) -> None:
    one, _ = create(link, topic("one"), topic("two"))
    assert delete(link, DeleteTopicState(topic_id=one.topic_id), DeleteTopicState(name="two")) == {
        ("one", True): 0,
        ("two", True): 0,
    }
    again = delete(link, DeleteTopicState(topic_id=one.topic_id), DeleteTopicState(name="two"))
    assert again == {
        (None, True): ErrorCode.UNKNOWN_TOPIC_ID,
        ("two", False): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_topic_that_is_named_twice_is_not_deleted(link: WireLink) -> None:
    (made,) = create(link, topic("t"))
    by_name, by_id = DeleteTopicState(name="t"), DeleteTopicState(topic_id=made.topic_id)
    refused = ErrorCode.INVALID_REQUEST
    assert delete(link, by_name, by_name) == {("t", False): refused}
    assert delete(link, by_id, by_id) == {(None, True): refused}
    assert delete(link, by_name, by_id) == {("t", True): refused}
    both = DeleteTopicState(name="t", topic_id=Uuid(made.topic_id))
    assert delete(link, both) == {("t", True): refused}
    assert delete(link, DeleteTopicState()) == {(None, False): refused}
    assert delete(link, by_name) == {("t", True): 0}


def test_old_clients_delete_by_name(link: WireLink) -> None:
    create(link, topic("t"))
    response = link.ask(DeleteTopicsRequest(topic_names=["t", "u"]), 1)
    assert isinstance(response, DeleteTopicsResponse)
    assert {each.name: each.error_code for each in response.responses} == {"t": 0, "u": 3}


def test_partitions_are_added_topic_by_topic(link: WireLink) -> None:
    create(link, topic("t"), topic("u"))
    wanted = [("t", 3), ("u", 1), ("unknown", 2), ("v", 2), ("v", 3)]
    response = link.ask(
        CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in wanted
            ]
        )
    )
    assert isinstance(response, CreatePartitionsResponse)
    assert {each.name: each.error_code for each in response.results} == {
        "t": ErrorCode.NONE,
        "u": ErrorCode.INVALID_PARTITIONS,
        "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "v": ErrorCode.INVALID_REQUEST,
    }


def page(
    link: WireLink, names: tuple[str, ...], limit: int, cursor: Cursor | None = None
) -> tuple[list[tuple[str | None, list[int]]], tuple[str, int] | None]:
    response = link.ask(
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
    )
    assert isinstance(response, DescribeTopicPartitionsResponse)
    following = response.next_cursor
    return (
        [(each.name, [p.partition_index for p in each.partitions]) for each in response.topics],
        None if following is None else (following.topic_name, following.partition_index),
    )


def test_partitions_are_described_page_by_page(link: WireLink) -> None:
    create(link, topic("a", 3), topic("b", 2))
    assert page(link, (), 2) == ([("a", [0, 1])], ("a", 2))
    assert page(link, (), 2, Cursor(topic_name="a", partition_index=2)) == (
        [("a", [2]), ("b", [0])],
        ("b", 1),
    )
    # A page that ends with a topic names the next topic, whether or not it exists.
    assert page(link, ("zz", "a"), 3) == ([("a", [0, 1, 2])], ("zz", 0))
    assert page(link, ("b", "a"), 0) == ([("a", [0])], ("a", 1))
    assert page(link, ("a",), 10, Cursor(topic_name="a", partition_index=9)) == ([("a", [])], None)
    assert page(link, ("a",), 10, Cursor(topic_name="aa")) == ([("a", [])], None)
    assert page(link, (), 10, Cursor(topic_name="aa", partition_index=1)) == ([("b", [0, 1])], None)


def test_an_interrupted_deletion_is_completed_at_the_next_start(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as own:
        create(own, topic("t", 2))
    tree = Tree.open(tmp_path / "metadata.sqlite", SystemClock())
    marked = tree.apply(tree.open_session(), [[Create("/admin/delete_topics/t")]])
    assert marked == [["/admin/delete_topics/t"]]
    tree.close()
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as own:
        assert page(own, (), 10) == ([], None)
        assert not list(tmp_path.glob("logs/t-[0-9]"))
        assert len(list(tmp_path.glob("logs/t-*-delete"))) == 2
        (again,) = create(own, topic("t"))
        assert again.error_code == 0


@pytest.mark.parametrize("partitions", ["{}", '{"1": [1]}'])
def test_adding_partitions_to_a_topic_without_partition_0_is_answered(
    tmp_path: Path, partitions: str
) -> None:
    """Its node in the metadata store was written by hand."""
    with EmbeddedBroker(directory=tmp_path):
        pass
    tree = Tree.open(tmp_path / "metadata.sqlite", SystemClock())
    node = f'{{"version": 3, "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": {partitions}}}'
    tree.apply(tree.open_session(), [[Create("/brokers/topics/t", node.encode())]])
    tree.close()
    with EmbeddedBroker(directory=tmp_path) as broker, WireLink(broker.bootstrap) as own:
        response = own.ask(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="t", count=3, assignments=None)]
            )
        )
        assert isinstance(response, CreatePartitionsResponse)
        (result,) = response.results
        expected = ErrorCode.INVALID_PARTITIONS if partitions == "{}" else ErrorCode.NONE
        assert result.error_code == expected, result.error_message
