"""librdkafka over TLS, PLAIN and SCRAM, with an unmodified configuration."""

import time
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import KeyFiles, certified

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LISTENERS = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
USER, PASSWORD = "bob, the =", "geheim"


Settings: TypeAlias = dict[str, str | int | float | bool]


class Secured(NamedTuple):
    """A broker with a listener of each kind."""

    broker: EmbeddedBroker
    own: KeyFiles
    client: KeyFiles

    def settings(self, listener: str, **more: str) -> Settings:
        given: Settings = {
            "bootstrap.servers": self.broker.running.state.listeners[listener],
            "security.protocol": listener,
            **{name.replace("_", "."): text for name, text in more.items()},
        }
        if listener.endswith("SSL"):
            given["ssl.ca.location"] = str(self.own.certificate)
        if listener == "SSL":
            given["ssl.key.location"] = str(self.client.key)
            given["ssl.certificate.location"] = str(self.client.certificate)
        return given


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    own, client = certified(folder, "broker"), certified(folder, "client", "/CN=client")
    login = f'{PLAIN} required user_alice="secret;";'
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "ssl.keystore.location": str(own.store),
        "ssl.truststore.location": str(client.certificate),
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
        "listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "2000",
        "connection.failed.authentication.delay.ms": "20",
    }
    with EmbeddedBroker(settings=settings) as broker:
        secured = Secured(broker, own, client)
        admin = AdminClient(secured.settings("PLAINTEXT"))
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            new = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
            for future in admin.alter_user_scram_credentials([new]).values():
                future.result(20)
        yield secured


def create(settings: Settings, topic: str) -> None:
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        future.result(20)


def carried(settings: Settings, topic: str, values: list[bytes]) -> list[bytes]:
    """Writes values with these settings; returns what a consumer with the same settings reads."""
    create(settings, topic)
    producer = Producer({**settings, "linger.ms": "50", "message.max.bytes": "10000000"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(found) < len(values) and time.monotonic() < deadline:
        for message in consumer.consume(100, 0.5):
            assert message.error() is None, message.error()
            found.append(message.value() or b"")
    consumer.close()
    return found


ALICE = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "secret;"}


@pytest.mark.parametrize(
    ("listener", "login"),
    [
        ("SSL", {}),
        ("SASL_SSL", ALICE),
        ("SASL_PLAINTEXT", ALICE),
        *(
            (listener, {"sasl_mechanism": f"SCRAM-SHA-{bits}", "sasl_username": USER})
            for listener in ("SASL_SSL", "SASL_PLAINTEXT")
            for bits in (256, 512)
        ),
    ],
)
def test_records_are_written_and_read_over_each_kind_of_listener(
    secured: Secured, listener: str, login: dict[str, str]
) -> None:
    login = {"sasl_password": PASSWORD, **login} if login else {}
    values = [bytes([65 + number % 26]) * (number * 331 % 30_000) for number in range(300)]
    values.append(b"large" * 150_000)  # spans many TLS records, each way
    topic = "-".join(["t", listener, login.get("sasl_mechanism", "none")])
    assert carried(secured.settings(listener, **login), topic, values) == values


@pytest.mark.parametrize(
    ("listener", "login"),
    [
        ("SASL_SSL", ALICE | {"sasl_password": "wrong"}),
        ("SASL_PLAINTEXT", ALICE | {"sasl_username": "nobody"}),
        (
            "SASL_PLAINTEXT",
            {
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_username": USER,
                "sasl_password": "wrong",
            },
        ),
        (
            "SASL_SSL",
            {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "alice", "sasl_password": "x"},
        ),
    ],
)
def test_a_wrong_login_is_an_authentication_error(
    secured: Secured, listener: str, login: dict[str, str]
) -> None:
    errors: list[str] = []
    settings = secured.settings(listener, **login)
    producer = Producer({**settings, "error_cb": lambda error: errors.append(error.name())})
    with pytest.raises(KafkaException):
        producer.list_topics(timeout=2)
    producer.poll(1)
    assert "_AUTHENTICATION" in errors


def test_a_client_without_a_trusted_certificate_is_refused(secured: Secured) -> None:
    for shown in (None, secured.own):
        settings = secured.settings("SSL")
        del settings["ssl.key.location"], settings["ssl.certificate.location"]
        if shown is not None:
            settings["ssl.key.location"] = str(shown.key)
            settings["ssl.certificate.location"] = str(shown.certificate)
        with pytest.raises(KafkaException):
            Producer(settings).list_topics(timeout=2)


def test_a_client_reauthenticates_while_it_works(secured: Secured) -> None:
    """KIP-368: librdkafka does so before the two seconds have passed, on the same connection."""
    settings = secured.settings("SASL_PLAINTEXT", **ALICE)
    producer = Producer({**settings, "linger.ms": "1"})
    create(settings, "again")
    failed: list[object] = []

    def delivered(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        producer.produce("again", b"x", on_delivery=delivered)
        producer.poll(0.01)
    assert producer.flush(10) == 0
    assert failed == []


def test_scram_users_are_described_and_deleted(secured: Secured) -> None:
    admin = AdminClient(secured.settings("PLAINTEXT"))
    futures = admin.describe_user_scram_credentials([USER])
    assert isinstance(futures, dict)
    described = futures[USER].result(20)
    found = {each.mechanism: each.iterations for each in described.scram_credential_infos}
    assert found == {ScramMechanism.SCRAM_SHA_256: 4096, ScramMechanism.SCRAM_SHA_512: 4096}
    gone = UserScramCredentialDeletion("nobody", ScramMechanism.SCRAM_SHA_256)
    with pytest.raises(KafkaException, match="does not exist"):
        admin.alter_user_scram_credentials([gone])["nobody"].result(20)
