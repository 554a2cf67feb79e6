"""Settings of the Apache Kafka brokers that tests start."""

from peers.kafka import kraft_settings, zookeeper_settings


def test_each_kraft_node_has_its_own_ports_and_knows_all_voters() -> None:
    settings = kraft_settings(1, [101, 102, 103], [201, 202, 203])
    assert settings["node.id"] == 1
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:102,CONTROLLER://127.0.0.1:202"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:102"
    assert settings["controller.quorum.voters"] == (
        "0@127.0.0.1:201,1@127.0.0.1:202,2@127.0.0.1:203"
    )


def test_internal_topics_have_as_many_copies_as_there_are_brokers_up_to_three() -> None:
    copies = [
        zookeeper_settings(0, list(range(brokers)), "")["offsets.topic.replication.factor"]
        for brokers in (1, 2, 3, 5)
    ]
    assert copies == [1, 2, 3, 3]
