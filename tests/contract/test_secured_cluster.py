"""A cluster with all security features: TLS, logins, ACLs, quotas, and TLS to ZooKeeper."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from peers.penstock_cluster import PenstockCluster
from peers.process import wait_until
from penstock.cli.main import main
from support.security.certificates import certified
from support.security.secured_zookeeper import secured_zookeeper

pytestmark = pytest.mark.peer

CLIENT = {
    "bootstrap.servers",
    "security.protocol",
    "ssl.ca.location",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
}
"""Settings that our commands accept under librdkafka's names."""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_replicas_follow_and_take_over_with_all_security_features(tmp_path: Path) -> None:
    """Brokers and the administrator log in by PLAIN, alice by SCRAM."""
    keys = certified(tmp_path, "broker")
    login = f'{PLAIN} required username="broker" password="b" user_broker="b" user_admin="a";'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.location": keys.store,
        "ssl.truststore.location": keys.certificate,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": login,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:admin",
        "offsets.topic.replication.factor": "2",
        "offsets.topic.num.partitions": "1",
        "zookeeper.session.timeout.ms": "6000",
        "zookeeper.connection.timeout.ms": "30000",
    }
    with (
        secured_zookeeper(tmp_path) as zookeeper,
        PenstockCluster(
            f"{zookeeper.secure}/secured", 3, settings={**settings, **zookeeper.client()}
        ) as cluster,
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
        topic = (ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:alice", "*")
        group = (ResourceType.GROUP, "g", ResourcePatternType.LITERAL, "User:alice", "*")
        rules = [
            AclBinding(*of, operation, AclPermissionType.ALLOW)
            for of, operation in (
                (topic, AclOperation.WRITE),
                (topic, AclOperation.READ),
                (group, AclOperation.READ),
            )
        ]
        for future in admin.create_acls(rules).values():
            future.result(20)
        given = [f"{name}={text}" for name, text in admin_settings.items() if name in CLIENT]
        secured = [word for each in given for word in ("-X", each)]
        quota = ["quota", "set", "--user", "alice", "producer_byte_rate=50000", *secured]
        assert CliRunner().invoke(main, quota).exit_code == 0
        created = CliRunner().invoke(main, ["user", "create", "alice", *secured], input="c\n")
        assert created.exit_code == 0, created.output
        alice: dict[str, str | int | float | bool]
        alice = {
            **admin_settings,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": "c",
        }
        producer = Producer({**alice, "acks": "all", "enable.idempotence": True})
        values = [b"%d" % number for number in range(300)]
        for number, value in enumerate(values[:200]):
            producer.produce("t", value, partition=number % 3)
        assert producer.flush(30) == 0
        cluster.kill(0)
        wait_until(lambda: in_sync(1, 2), 30, "two in sync")
        for number, value in enumerate(values[200:]):
            producer.produce("t", value, partition=number % 3)
        assert producer.flush(30) == 0
        consumer = Consumer({**alice, "group.id": "g", "auto.offset.reset": "earliest"})
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
        described = CliRunner().invoke(main, ["quota", "list", *secured])
        assert "50000" in described.output
        stranger = AdminClient(alice)
        with pytest.raises(KafkaException, match="authorization failed"):
            stranger.delete_topics(["t"])["t"].result(20)
