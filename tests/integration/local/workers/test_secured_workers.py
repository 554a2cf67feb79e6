"""Workers that log in to each other, with ACLs, and without any open listener."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.config.authorization import KNOWN_AUTHORIZERS
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified

Client = dict[str, str | int | float | bool]

LOGINS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="b" user_broker="b" user_admin="a";'
)
ACLS = {
    "authorizer.class.name": KNOWN_AUTHORIZERS[0],
    "super.users": "User:broker;User:admin",
}


def secured(protocol: str) -> dict[str, str]:
    return {
        "listeners": f"{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"listener.name.{protocol.lower()}.plain.sasl.jaas.config": LOGINS,
        **ACLS,
    }


def logged_in(broker: EmbeddedBroker, protocol: str, password: str = "a") -> Client:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": password,
        "log_level": 0,
    }


def use_every_worker(client: Client) -> None:
    """Writes to both workers, and reads the records in a group that one of them coordinates."""
    admin = AdminClient(client)
    assert len(admin.list_topics(timeout=10).brokers) == 2
    admin.create_topics([NewTopic("t", 4, 1)])["t"].result(10)
    reported: list[object] = []
    producer = Producer(client)
    for partition in range(4):
        producer.produce(
            "t", b"v", partition=partition, on_delivery=lambda *it: reported.append(it[0])
        )
    assert producer.flush(10) == 0
    assert reported == [None] * 4
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    found = consumer.consume(4, 20)
    consumer.close()
    assert sorted(each.partition() or 0 for each in found) == [0, 1, 2, 3]


def test_workers_log_in_to_each_other() -> None:
    with EmbeddedBroker(workers=2, settings=secured("SASL_PLAINTEXT")) as broker:
        use_every_worker(logged_in(broker, "SASL_PLAINTEXT"))


def test_workers_speak_tls_with_clients_and_each_other(tmp_path: Path) -> None:
    keys = certified(tmp_path, "broker")
    settings = {
        **secured("SASL_SSL"),
        "ssl.keystore.location": str(keys.store),
        "ssl.truststore.location": str(keys.certificate),
    }
    with EmbeddedBroker(workers=2, settings=settings) as broker:
        trusting: Client = {"ssl.ca.location": str(keys.certificate)}
        use_every_worker({**logged_in(broker, "SASL_SSL"), **trusting})
        for refused in (
            {**logged_in(broker, "SASL_SSL", password="wrong"), **trusting},
            {**logged_in(broker, "SASL_SSL")},  # does not trust the certificate
            {**logged_in(broker, "SASL_PLAINTEXT")},
        ):
            with pytest.raises(KafkaException):
                AdminClient(refused).list_topics(timeout=1)


def test_a_client_certificate_names_a_user_on_every_worker(tmp_path: Path) -> None:
    keys = certified(tmp_path, "broker")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(keys.store),
        "ssl.truststore.location": str(keys.certificate),
        "authorizer.class.name": KNOWN_AUTHORIZERS[0],
        "super.users": "User:O=Example,CN=127.0.0.1",
    }
    with EmbeddedBroker(workers=2, settings=settings) as broker:
        use_every_worker(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": str(keys.certificate),
                "ssl.certificate.location": str(keys.certificate),
                "ssl.key.location": str(keys.key),
                "log_level": 0,
            }
        )
