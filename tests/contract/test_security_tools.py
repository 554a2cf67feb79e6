"""Kafka's own tools and the Java clients: users, ACLs, and records over TLS with SCRAM."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from peers.tools import tool
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified

pytestmark = pytest.mark.peer

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Secured(NamedTuple):
    """A broker with ACLs, and settings files for its clients."""

    bootstrap: str
    folder: Path

    def client(self, name: str, mechanism: str, module: str, password: str) -> str:
        path = self.folder / f"{name}.properties"
        path.write_text(
            "security.protocol=SASL_SSL\n"
            f"sasl.mechanism={mechanism}\n"
            f'sasl.jaas.config={module} required username="{name}" password="{password}";\n'
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={self.folder}/broker.cert.pem\n"
        )
        return str(path)

    def run(self, name: str, *args: str, stdin: str = "", check: bool = True) -> str:
        done = tool(name, "--bootstrap-server", self.bootstrap, *args, stdin=stdin, check=check)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    keys = certified(folder, "broker")
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "ssl.keystore.location": str(keys.store),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_admin="a";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield Secured(broker.bootstrap, folder)


def test_a_user_is_created_gets_acls_writes_and_reads(secured: Secured) -> None:
    admin = ("--command-config", secured.client("admin", "PLAIN", PLAIN, "a"))
    user = ("--entity-type", "users", "--entity-name", "bob")
    credential = "SCRAM-SHA-512=[iterations=8192,password=geheim]"
    assert "Completed updating config" in secured.run(
        "kafka-configs", *admin, "--alter", *user, "--add-config", credential
    )
    secured.run("kafka-topics", *admin, "--create", "--topic", "t", "--partitions", "1")
    bob = secured.client("bob", "SCRAM-SHA-512", SCRAM, "geheim")
    refused = secured.run(
        "kafka-console-producer",
        *("--topic", "t", "--producer.config", bob),
        *("--producer-property", "max.block.ms=5000"),
        stdin="one\n",
        check=False,
    )
    assert "TopicAuthorizationException" in refused
    rights = ("--allow-principal", "User:bob", "--topic", "t")
    secured.run("kafka-acls", *admin, "--add", *rights, "--producer")
    added = secured.run("kafka-acls", *admin, "--add", *rights, "--consumer", "--group", "g")
    assert "principal=User:bob, host=*, operation=READ, permissionType=ALLOW" in added
    produce = ("--topic", "t", "--producer.config", bob)
    secured.run("kafka-console-producer", *produce, stdin="one\ntwo\n")
    consume = ("--topic", "t", "--group", "g", "--from-beginning", "--max-messages", "2")
    read = secured.run("kafka-console-consumer", *consume, "--consumer.config", bob)
    assert {"one", "two"} <= set(read.split())
    listed = secured.run("kafka-acls", *admin, "--list", "--principal", "User:bob")
    assert "ResourcePattern(resourceType=GROUP, name=g, patternType=LITERAL)" in listed
    secured.run("kafka-acls", *admin, "--remove", *rights, "--producer", "--force")
    left = secured.run("kafka-acls", *admin, "--list", "--topic", "t")
    assert "operation=READ" in left
    assert "operation=WRITE" not in left
    secured.run("kafka-configs", *admin, "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    gone = secured.run("kafka-topics", "--command-config", bob, "--list", check=False)
    assert "Authentication failed" in gone


@pytest.mark.parametrize(
    ("entity", "limit"),
    [
        (("--entity-type", "users", "--entity-name", "bob"), "producer_byte_rate=1024"),
        (("--entity-type", "users", "--entity-default"), "request_percentage=50"),
        (("--entity-type", "clients", "--entity-name", "app"), "consumer_byte_rate=2048"),
        (("--entity-type", "ips", "--entity-name", "127.0.0.9"), "connection_creation_rate=5"),
    ],
)
def test_quotas_are_set_shown_and_removed(
    secured: Secured, entity: tuple[str, ...], limit: str
) -> None:
    admin = ("--command-config", secured.client("admin", "PLAIN", PLAIN, "a"))

    def configs(*words: str) -> str:
        return secured.run("kafka-configs", *admin, *words, *entity)

    assert "Completed updating" in configs("--alter", "--add-config", limit)
    assert f"{limit}.0" in configs("--describe")
    configs("--alter", "--delete-config", limit.partition("=")[0])
    assert limit.partition("=")[0] not in configs("--describe")


def test_the_keystore_path_is_altered_while_the_broker_runs(secured: Secured) -> None:
    admin = ("--command-config", secured.client("admin", "PLAIN", PLAIN, "a"))
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    name = "listener.name.sasl_ssl.ssl.keystore.location"
    other = secured.folder / "other.pem"
    other.write_text((secured.folder / "broker.store.pem").read_text())

    def configs(*words: str, check: bool = True) -> str:
        return secured.run("kafka-configs", *admin, *broker, *words, check=check)

    assert "Completed updating" in configs("--alter", "--add-config", f"{name}={other}")
    assert f"{name}={other}" in configs("--describe")
    refused = configs("--alter", "--add-config", f"{name}=/missing.pem", check=False)
    assert "cannot read /missing.pem" in refused
