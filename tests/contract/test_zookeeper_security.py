"""A ZooKeeper with users and TLS: logins, protected nodes, and refusals."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from penstock.errors import ConfigError
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified
from support.security.secured_zookeeper import CANARY, LOGIN, MODULE, Secured, secured_zookeeper

pytestmark = pytest.mark.peer


def settings_of(secured: Secured, chroot: str, **more: str) -> dict[str, str]:
    return {
        **secured.client(),
        "zookeeper.connect": f"{secured.secure}/{chroot}",
        "zookeeper.connection.timeout.ms": "5000",
        "broker.id": "0",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        **{name.replace("_", "."): text for name, text in more.items()},
    }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_zookeeper(tmp_path_factory.mktemp("zookeeper")) as running:
        yield running


def acls(client: KazooClient, path: str) -> set[tuple[str, str, int]]:
    found, _ = client.get_acls(path)
    return {(each.id.scheme, each.id.id, each.perms) for each in found}


def test_a_broker_logs_in_over_tls_and_protects_its_nodes(secured: Secured) -> None:
    settings = settings_of(secured, "protected")
    own, reading = ("sasl", "kafka", 31), ("world", "anyone", 1)
    with EmbeddedBroker(settings=settings):
        stranger = KazooClient(secured.zookeeper.connect)
        stranger.start(10)
        try:
            for path in ("/", "/brokers/ids", "/brokers/ids/0", "/controller", "/config/changes"):
                assert acls(stranger, f"/protected{path}".rstrip("/")) == {own, reading}, path
            with pytest.raises(NoAuthError):
                stranger.delete("/protected/controller")
            with pytest.raises(NoAuthError):
                stranger.get_children("/protected/config/users")
        finally:
            stranger.stop()
            stranger.close()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            {"penstock_zookeeper_jaas_config": LOGIN.replace(CANARY, f"{CANARY}2")},
            "refuses the login of 'kafka'",
        ),
        ({"zookeeper_ssl_truststore_location": "OTHER"}, "certificate verify failed"),
        ({"penstock_zookeeper_jaas_config": "x required;"}, "jaas.config must begin with org"),
        ({"penstock_zookeeper_jaas_config": f"{MODULE} required;"}, "no username and password"),
        ({"zookeeper_ssl_truststore_location": "/none"}, "cannot read /none"),
        ({"zookeeper_ssl_client_enable": "false"}, "zookeeper.ssl.client.enable is false"),
    ],
)
def test_a_wrong_login_or_authority_prevents_the_start(
    secured: Secured, more: dict[str, str], says: str, tmp_path: Path
) -> None:
    other = certified(tmp_path, "other")
    given = {name: text.replace("OTHER", str(other.certificate)) for name, text in more.items()}
    settings = settings_of(secured, "refused", **given)
    with pytest.raises(ConfigError) as caught, EmbeddedBroker(settings=settings):
        pass
    assert says in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_jaas_file_section_is_enough_to_log_in(secured: Secured) -> None:
    settings = settings_of(
        secured, "section", penstock_zookeeper_jaas_config=f"Client {{ {LOGIN} }};"
    )
    with EmbeddedBroker(settings=settings) as broker:
        assert broker.bootstrap
