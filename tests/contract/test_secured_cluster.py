"""Brokers of a cluster that speak TLS and log in to each other, with ACLs on."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from peers.zookeeper import ZooKeeper
from support.security.certificates import certified

pytestmark = pytest.mark.peer

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_replicas_follow_and_take_over_over_tls_and_sasl(tmp_path: Path) -> None:
    keys = certified(tmp_path, "broker")
    login = (
        f'{PLAIN} required username="broker" password="b" user_broker="b" '
        'user_admin="a" user_alice="c";'
    )
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.location": keys.store,
        "ssl.truststore.location": keys.certificate,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": login,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:admin",
        "offsets.topic.replication.factor": "2",
        "offsets.topic.num.partitions": "1",
        "zookeeper.session.timeout.ms": "4000",
    }
    with (
        ZooKeeper() as zookeeper,
        PenstockCluster(zookeeper.connect, 3, settings=settings) as cluster,
    ):
        admin_settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": cluster.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(keys.certificate),
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "a",
            "log_level": 0,
        }
        admin = AdminClient(admin_settings)
        for future in admin.create_topics([NewTopic("t", 3, 3)]).values():
            future.result(20)

        def in_sync(*brokers: int) -> bool:
            parts = admin.list_topics("t", timeout=10).topics["t"].partitions.values()
            return all(sorted(each.isrs) == list(brokers) for each in parts)

        wait_until(lambda: in_sync(0, 1, 2), 30, "all in sync")
        producer = Producer({**admin_settings, "acks": "all", "enable.idempotence": True})
        values = [b"%d" % number for number in range(300)]
        for number, value in enumerate(values[:200]):
            producer.produce("t", value, partition=number % 3)
        assert producer.flush(30) == 0
        cluster.kill(0)
        wait_until(lambda: in_sync(1, 2), 30, "two in sync")
        for number, value in enumerate(values[200:]):
            producer.produce("t", value, partition=number % 3)
        assert producer.flush(30) == 0
        consumer = Consumer({**admin_settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        found: list[bytes] = []

        def complete() -> bool:
            message = consumer.poll(1)
            if message is not None and not message.error():
                found.append(message.value() or b"")
            return len(found) >= len(values)

        wait_until(complete, 40, "all records")
        consumer.close()
        assert sorted(found) == sorted(values)
        stranger = AdminClient({**admin_settings, "sasl.username": "alice", "sasl.password": "c"})
        with pytest.raises(KafkaException, match="authorization failed"):
            stranger.delete_topics(["t"])["t"].result(20)
