"""Unmodified clients of many languages over TLS, with each SASL mechanism that they support."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
)
from kafka.admin import ResourceType as KafkaPythonResource

from clients.secured import (
    CLIENTS,
    Job,
    franz_go,
    kafka_python_settings,
    librdkafka_settings,
)
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified
from support.security.tokens import own_key_set, token

pytestmark = pytest.mark.peer

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER, PASSWORD = "bob", "geheim"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Secured(NamedTuple):
    address: str
    ca: str

    def job(self, mechanism: str, topic: str) -> Job:
        if mechanism == "OAUTHBEARER":
            return Job(self.address, self.ca, mechanism, topic, token=token(USER))
        return Job(self.address, self.ca, mechanism, topic, USER, PASSWORD)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    keys = certified(folder, "broker")
    issuer = folder / "keys.json"
    issuer.write_bytes(own_key_set())
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(keys.store),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN} required user_bob="{PASSWORD}";',
        "sasl.oauthbearer.jwks.endpoint.url": issuer.as_uri(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{USER};User:ANONYMOUS",
    }
    with EmbeddedBroker(settings=settings) as broker:
        listeners = broker.running.state.listeners
        admin = AdminClient({"bootstrap.servers": listeners["PLAINTEXT"]})
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            info = ScramCredentialInfo(mechanism, 4096)
            new = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
            for future in admin.alter_user_scram_credentials([new]).values():
                future.result(20)
        yield Secured(listeners["SASL_SSL"], str(keys.certificate))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_writes_and_reads_with_every_mechanism(
    secured: Secured, client: str, mechanism: str
) -> None:
    job = secured.job(mechanism, f"{client}-{mechanism}")
    assert CLIENTS[client](job) == list(job.values)


def test_franz_go_adds_acls_and_quotas(secured: Secured) -> None:
    job = secured.job("SCRAM-SHA-512", "by-franz")
    reported, *_ = franz_go(job)
    assert reported == "1 rules 1 quotas"


def test_librdkafka_adds_acls(secured: Secured) -> None:
    admin = AdminClient(librdkafka_settings(secured.job("SCRAM-SHA-512", "t")))
    resource = (ResourceType.TOPIC, "by-librdkafka", ResourcePatternType.LITERAL, "User:eve", "*")
    rule = AclBinding(*resource, AclOperation.READ, AclPermissionType.ALLOW)
    (created,) = admin.create_acls([rule]).values()
    created.result(20)
    wanted = AclBindingFilter(*resource, AclOperation.ANY, AclPermissionType.ANY)
    assert admin.describe_acls(wanted).result(20) == [rule]
    (deleted,) = admin.delete_acls([wanted]).values()
    assert deleted.result(20) == [rule]
    assert admin.describe_acls(wanted).result(20) == []


def test_kafka_python_adds_acls(secured: Secured) -> None:
    admin = KafkaAdminClient(**kafka_python_settings(secured.job("SCRAM-SHA-512", "t")))
    resource = ResourcePattern(KafkaPythonResource.TOPIC, "by-kafka-python")
    rule = ACL("User:eve", "*", ACLOperation.READ, ACLPermissionType.ALLOW, resource)
    admin.create_acls([rule])
    wanted = ACLFilter("User:eve", "*", ACLOperation.ANY, ACLPermissionType.ANY, resource)
    found = admin.describe_acls(wanted)
    assert "by-kafka-python" in str(found)
    admin.delete_acls([wanted])
    assert "by-kafka-python" not in str(admin.describe_acls(wanted))
    admin.close()
