"""Keys and certificates that are altered while the broker runs (KIP-226)."""

import os
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.errors import ErrorCode
from penstock.testing.broker import EmbeddedBroker
from penstock.wire.messages import alter_configs as replacing
from penstock.wire.messages import incremental_alter_configs as altering
from penstock.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from support.brokers.wire_link import WireLink
from support.security.certificates import KeyFiles, certified, pkcs12, served_certificate

BROKER = 4
LOCATION = "listener.name.ssl.ssl.keystore.location"
CANARY = "canary-secret"
PASSWORD = "listener.name.ssl.ssl.keystore.password"


class Altered(NamedTuple):
    """A broker with its first certificate, and two other certificates."""

    address: str
    link: WireLink
    first: KeyFiles
    second: KeyFiles
    stranger: KeyFiles

    def alter(self, name: str, value: str, broker: str = "0") -> tuple[int, str]:
        return self.alter_all({name: value}, broker)

    def alter_all(self, settings: dict[str, str], broker: str = "0") -> tuple[int, str]:
        configs = [altering.AlterableConfig(name, 0, value) for name, value in settings.items()]
        resource = altering.AlterConfigsResource(BROKER, broker, configs)
        response = self.link.ask(altering.IncrementalAlterConfigsRequest([resource]))
        assert isinstance(response, altering.IncrementalAlterConfigsResponse)
        (answer,) = response.responses
        return answer.error_code, answer.error_message or ""

    def shows(self, keys: KeyFiles) -> bool:
        try:
            return bool(served_certificate(self.address, keys))
        except ssl.SSLCertVerificationError:
            return False

    def wait_for(self, keys: KeyFiles) -> None:
        deadline = time.monotonic() + 10
        while not self.shows(keys):
            assert time.monotonic() < deadline, "the new certificate is not used"
            time.sleep(0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Altered]:
    first, second = certified(tmp_path, "first"), certified(tmp_path, "second")
    (tmp_path / "passwords").write_text(f"second={CANARY}\nwrong=x\n")
    settings = {
        "broker.id": "0",
        "config.providers": "file",
        "config.providers.file.class": (
            "org.apache.kafka.common.config.provider.FileConfigProvider"
        ),
        "config.providers.file.param.allowed.paths": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "ssl.keystore.location": str(first.store),
    }
    with EmbeddedBroker(settings=settings) as running:
        listeners = running.running.state.listeners
        with WireLink(listeners["PLAINTEXT"]) as link:
            stranger = certified(tmp_path, "stranger", "/CN=somebody")
            yield Altered(listeners["SSL"], link, first, second, stranger)


def test_another_keystore_is_used_at_once_and_described(broker: Altered) -> None:
    assert broker.shows(broker.first)
    assert broker.alter(LOCATION, str(broker.second.store)) == (0, "")
    broker.wait_for(broker.second)
    asked = DescribeConfigsResource(BROKER, "0", [LOCATION])
    response = broker.link.ask(DescribeConfigsRequest([asked]))
    assert isinstance(response, DescribeConfigsResponse)
    assert [each.value for each in response.results[0].configs] == [str(broker.second.store)]


def test_a_password_altered_to_a_variable_is_stored_as_the_variable(
    broker: Altered, tmp_path: Path
) -> None:
    store, secrets = str(pkcs12(broker.second, CANARY)), tmp_path / "passwords"
    for password, says in (
        (f"${{file:{secrets}:wrong}}", "is not the password of"),
        (f"${{file:{secrets}:missing}}", "has no 'missing'"),
        ("${vault:second}", "is not a variable of the broker's config.providers"),
        (CANARY, "would lie in the metadata"),
    ):
        code, text = broker.alter_all({LOCATION: store, PASSWORD: password})
        assert (code, says in text, CANARY in text) == (ErrorCode.INVALID_REQUEST, True, False)
    given = {LOCATION: store, PASSWORD: f"${{file:{secrets}:second}}"}
    assert broker.alter_all(given) == (0, "")
    broker.wait_for(broker.second)
    asked = DescribeConfigsResource(BROKER, "0", [PASSWORD])
    response = broker.link.ask(DescribeConfigsRequest([asked]))
    assert isinstance(response, DescribeConfigsResponse)
    assert [each.value for each in response.results[0].configs] == [None]


def test_the_older_request_alters_a_keystore_too(broker: Altered) -> None:
    config = replacing.AlterableConfig(LOCATION, str(broker.second.store))
    resource = replacing.AlterConfigsResource(BROKER, "0", [config])
    response = broker.link.ask(replacing.AlterConfigsRequest([resource]))
    assert isinstance(response, replacing.AlterConfigsResponse)
    assert response.responses[0].error_code == 0
    broker.wait_for(broker.second)


def test_altering_to_the_same_path_reads_the_file_again(broker: Altered) -> None:
    assert broker.alter(LOCATION, str(broker.first.store)) == (0, "")
    broker.first.store.write_text(broker.second.pem)
    assert broker.alter(LOCATION, str(broker.first.store)) == (0, "")
    broker.wait_for(broker.second)


def test_an_unusable_keystore_is_refused_and_the_old_one_stays(
    broker: Altered, tmp_path: Path
) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("canary")
    pipe, endless = tmp_path / "pipe", tmp_path / "endless.pem"
    os.mkfifo(pipe)
    with endless.open("wb") as file:
        file.truncate(1 << 30)
    for value, says in (
        (str(pipe), "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        (str(endless), "too many for a store"),
        ("a\0b", "is not the name of a file"),
        ("/missing.pem", "cannot read /missing.pem"),
        (str(junk), "is neither PEM nor PKCS12"),
        (str(broker.stranger.store), "the new certificate is of 'CN=somebody'"),
    ):
        code, text = broker.alter(LOCATION, value)
        assert (code, says in text, "canary" in text) == (ErrorCode.INVALID_REQUEST, True, False)
    assert broker.shows(broker.first)


@pytest.mark.parametrize(
    ("name", "broker_id", "says"),
    [
        ("ssl.keystore.location", "0", "only per-listener using the listener prefix"),
        (LOCATION, "", "each broker has its own listener.name.ssl.ssl.keystore.location"),
        (PASSWORD, "0", "would lie in the metadata as it is: write a variable"),
        ("listener.name.ssl.ssl.keystore.key", "0", "Cannot update these configs dynamically"),
    ],
)
def test_only_files_of_one_listener_of_one_broker_can_be_altered(
    broker: Altered, name: str, broker_id: str, says: str
) -> None:
    code, text = broker.alter(name, str(broker.second.store), broker_id)
    assert (code, says in text) == (ErrorCode.INVALID_REQUEST, True), text
