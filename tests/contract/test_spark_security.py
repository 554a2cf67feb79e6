"""TLS and SASL of Spark's tasks against a real Kafka that requires them."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from peers.kafka import KafkaCluster
from peers.process import free_ports
from penstock.client.errors import BrokerRefused
from penstock.client.sasl import ClientAuthenticationFailed
from penstock.errors import KafkaError
from penstock.spark.options import Options
from penstock.spark.source.ranges import OffsetRange
from penstock.spark.source.read import read_range
from penstock.spark.source.settings import batch_settings
from penstock.types import TopicPartition

pytestmark = pytest.mark.peer
PLACE = TopicPartition("secured", 0)
LISTENERS = ("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")
MODULES = "org.apache.kafka.common.security"
LOGIN = {"PLAIN": "plain.PlainLoginModule", "SCRAM": "scram.ScramLoginModule"}


@dataclass(frozen=True)
class Secured:
    """A cluster with a listener of each kind, and the certificate that all of them use."""

    ports: dict[str, int]
    folder: Path

    @property
    def certificate(self) -> str:
        return (self.folder / "cert.pem").read_text()

    @property
    def key(self) -> str:
        return (self.folder / "key.pem").read_text()

    def values(self, listener: str, **settings: str) -> list[bytes]:
        """What a task reads over this listener."""
        kafka = {f"kafka.{name.replace('_', '.')}": text for name, text in settings.items()}
        given = {
            "kafka.bootstrap.servers": f"127.0.0.1:{self.ports[listener]}",
            "kafka.security.protocol": listener,
            "kafka.socket.connection.setup.timeout.ms": "5000",
            "kafka.default.api.timeout.ms": "15000",
            "subscribe": PLACE.topic,
        }
        read, _ = batch_settings(Options(given | kafka))
        batches = read_range(OffsetRange(PLACE, 0, 3), read)
        return [value for batch in batches for value in batch.column("value").to_pylist()]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    certified(folder)
    # Completed below, once the cluster has chosen its ports.
    settings: dict[str, object] = {"auto.create.topics.enable": "true"}
    cluster = KafkaCluster(settings=settings, folder=folder / "kafka")
    ports = dict(zip(LISTENERS[1:], free_ports(3), strict=True))
    ports["PLAINTEXT"] = cluster.port(0)
    settings.update(listener_settings(ports, cluster._controller_ports[0], folder))
    with cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            credential = UserScramCredentialUpsertion(
                "bob, the =", ScramCredentialInfo(mechanism, 4096), "scräm".encode()
            )
            for future in admin.alter_user_scram_credentials([credential]).values():
                future.result(20)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for n in range(3):
            producer.produce(PLACE.topic, b"%d" % n)
        assert producer.flush(20) == 0
        del admin, producer
        yield Secured(ports, folder)


def certified(folder: Path) -> None:
    """Creates one self-signed certificate, for the broker, for clients and as authority."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run([*command, *name, *files], check=True, capture_output=True)
    (folder / "store.pem").write_text(key.read_text() + certificate.read_text())


def listener_settings(ports: dict[str, int], controller: int, folder: Path) -> dict[str, object]:
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    settings: dict[str, object] = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": ",".join(
            ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in LISTENERS)]
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "store.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "cert.pem",
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    }
    for listener in ("sasl_ssl", "sasl_plaintext"):
        name = f"listener.name.{listener}"
        settings[f"{name}.plain.sasl.jaas.config"] = (
            f'{MODULES}.{LOGIN["PLAIN"]} required user_alice="secret;";'
        )
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{name}.{mechanism}.sasl.jaas.config"] = (
                f"{MODULES}.{LOGIN['SCRAM']} required;"
            )
    return settings


def test_tls_presents_a_client_certificate_and_verifies_the_brokers(secured: Secured) -> None:
    shown = {
        "ssl_truststore_certificates": secured.certificate,
        "ssl_keystore_key": secured.key,
        "ssl_keystore_certificate_chain": secured.certificate,
    }
    assert secured.values("SSL", **shown) == [b"0", b"1", b"2"]
    stores = {
        "ssl_truststore_location": str(secured.folder / "cert.pem"),
        "ssl_keystore_location": str(secured.folder / "store.pem"),
        "ssl_keystore_type": "PEM",
    }
    assert secured.values("SSL", **stores) == [b"0", b"1", b"2"]


def test_an_untrusted_certificate_is_rejected(secured: Secured) -> None:
    with pytest.raises(
        ClientAuthenticationFailed, match=r"TLS with 127\.0\.0\.1:\d+ failed.*self.signed"
    ):
        secured.values("SSL")


def test_a_broker_with_client_auth_rejects_clients_without_certificate(secured: Secured) -> None:
    with pytest.raises(KafkaError, match="CERTIFICATE"):
        secured.values("SSL", ssl_truststore_certificates=secured.certificate)


@pytest.mark.parametrize("listener", ["SASL_SSL", "SASL_PLAINTEXT"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_each_sasl_mechanism_logs_in(secured: Secured, listener: str, mechanism: str) -> None:
    user, password = ("alice", "secret;") if mechanism == "PLAIN" else ("bob, the =", "scräm")
    trusted = {"ssl_truststore_certificates": secured.certificate}
    named = {"sasl_username": user, "sasl_password": password}
    assert len(secured.values(listener, sasl_mechanism=mechanism, **named, **trusted)) == 3
    module = f"{MODULES}.{LOGIN[mechanism.partition('-')[0]]}"
    jaas = f'{module} required username="{user}" password="{password}";'
    found = secured.values(listener, sasl_mechanism=mechanism, sasl_jaas_config=jaas, **trusted)
    assert found == [b"0", b"1", b"2"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_fails_at_once(secured: Secured, mechanism: str) -> None:
    login = {"sasl_mechanism": mechanism, "sasl_username": "alice", "sasl_password": "wrong"}
    with pytest.raises(BrokerRefused, match=r"login of 'alice' by .*SASL_AUTHENTICATION_FAILED"):
        secured.values("SASL_PLAINTEXT", **login)
