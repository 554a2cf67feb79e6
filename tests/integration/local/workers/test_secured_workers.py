"""Workers that log in to each other, under ACLs, without any listener that is open."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.config.authorization import KNOWN_AUTHORIZERS
from penstock.testing.broker import EmbeddedBroker

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="broker" password="b" user_broker="b" user_admin="a";'
    ),
    "authorizer.class.name": KNOWN_AUTHORIZERS[0],
    "super.users": "User:broker;User:admin",
}


def test_workers_log_in_to_each_other() -> None:
    with EmbeddedBroker(workers=2, settings=SETTINGS) as broker:
        client: dict[str, str | int | float | bool] = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "a",
        }
        admin = AdminClient(client)
        assert len(admin.list_topics(timeout=10).brokers) == 2
        admin.create_topics([NewTopic("t", 4, 1)])["t"].result(10)
        told: list[object] = []
        producer = Producer(client)
        for partition in range(4):
            producer.produce(
                "t", b"v", partition=partition, on_delivery=lambda *it: told.append(it[0])
            )
        assert producer.flush(10) == 0
        assert told == [None] * 4
