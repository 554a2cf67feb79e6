"""Paths of ZooKeeper nodes, as Kafka has them."""

from penstock.metadata import paths
from penstock.types import BrokerId, TopicPartition


def test_paths_match_kafka() -> None:
    where = TopicPartition("t1", 3)
    assert [
        paths.broker(BrokerId(7)),
        paths.topic("t1"),
        paths.partitions("t1"),
        paths.partition(where),
        paths.partition_state(where),
        paths.deleted_topic("t1"),
        paths.topic_config("t1"),
        paths.broker_config(BrokerId(7)),
        paths.broker_config(None),
    ] == [
        "/brokers/ids/7",
        "/brokers/topics/t1",
        "/brokers/topics/t1/partitions",
        "/brokers/topics/t1/partitions/3",
        "/brokers/topics/t1/partitions/3/state",
        "/admin/delete_topics/t1",
        "/config/topics/t1",
        "/config/brokers/7",
        "/config/brokers/<default>",
    ]


def test_names_of_users_and_clients_are_url_encoded() -> None:
    assert paths.user_config("CN=Ann Lee,O=x/y~*é") == (
        "/config/users/CN%3DAnn%20Lee%2CO%3Dx%2Fy%7E%2A%C3%A9"
    )
    assert paths.user_client_config("alice", None) == "/config/users/alice/clients/<default>"
    assert paths.client_config("app.1_a-b") == "/config/clients/app.1_a-b"
    for name in ("CN=Ann Lee,O=x/y~*é", "<default>", None):
        assert paths.entity_of(paths.client_config(name).rpartition("/")[2]) == name


def test_the_parents_of_a_path_are_listed_from_the_root() -> None:
    assert paths.with_parents("/a/b/c") == ["/a", "/a/b", "/a/b/c"]


def test_sequential_names_end_in_their_number() -> None:
    assert paths.sequence_number("/config/changes/config_change_0000000042") == 42
