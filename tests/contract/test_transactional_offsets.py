"""Offsets committed in a transaction, if the broker restarts before the transaction ends."""

from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from penstock.testing.broker import EmbeddedBroker
from penstock.types import TopicPartition as CommittedPartition

WAIT_S = 20
QUIET = {"log_level": 0}


def settings(port: int) -> dict[str, str]:
    return {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}


def committed(bootstrap: str) -> int:
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", **QUIET})
    (found,) = reader.committed([TopicPartition("t", 0)], WAIT_S)
    reader.close()
    return int(found.offset)


def held(broker: EmbeddedBroker) -> set[CommittedPartition]:
    """The partitions whose offsets an open transaction of group g may change."""
    groups = broker.running.services.coordination.groups
    return groups.runtime.shard(groups.partition_of("g")).pending_offsets().get("g", set())


def test_offsets_of_an_open_transaction_survive_a_restart_until_it_ends(
    tmp_path: Path,
) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker:
        address = broker.bootstrap
        writer = Producer(
            {"bootstrap.servers": address, "transactional.id": "x", "retry.backoff.ms": 20, **QUIET}
        )
        writer.init_transactions(WAIT_S)
        writer.begin_transaction()
        writer.produce("t", "one")
        reader = Consumer({"bootstrap.servers": address, "group.id": "g", **QUIET})
        group = reader.consumer_group_metadata()
        writer.send_offsets_to_transaction([TopicPartition("t", 0, 5)], group, WAIT_S)
        writer.flush(WAIT_S)
        reader.close()
    port = int(address.rpartition(":")[2])
    with EmbeddedBroker(directory=tmp_path, settings=settings(port)) as broker:
        assert held(broker) == {CommittedPartition("t", 0)}
        writer.commit_transaction(WAIT_S)
        assert committed(broker.bootstrap) == 5
    with EmbeddedBroker(directory=tmp_path, settings=settings(port)) as broker:
        assert committed(broker.bootstrap) == 5
        del writer


def test_deleted_offsets_are_not_restored_by_their_transaction(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker:
        address = broker.bootstrap
        writer = Producer(
            {"bootstrap.servers": address, "transactional.id": "x", "retry.backoff.ms": 20, **QUIET}
        )
        writer.init_transactions(WAIT_S)
        writer.begin_transaction()
        writer.produce("t", "one")
        reader = Consumer({"bootstrap.servers": address, "group.id": "g", **QUIET})
        group = reader.consumer_group_metadata()
        writer.send_offsets_to_transaction([TopicPartition("t", 0, 5)], group, WAIT_S)
        writer.flush(WAIT_S)
        reader.close()
        admin = AdminClient({"bootstrap.servers": address, **QUIET})
        admin.delete_consumer_groups(["g"])["g"].result(WAIT_S)
        del admin
        assert held(broker) == set()
    port = int(address.rpartition(":")[2])
    with EmbeddedBroker(directory=tmp_path, settings=settings(port)) as broker:
        assert held(broker) == set(), "the log says so too"
        writer.commit_transaction(WAIT_S)
        assert committed(broker.bootstrap) == -1001
    with EmbeddedBroker(directory=tmp_path, settings=settings(port)) as broker:
        assert committed(broker.bootstrap) == -1001
        del writer
