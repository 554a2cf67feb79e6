"""Logins by OAUTHBEARER: clients, changing keys, and settings that prevent a start."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.security.tokens import as_jwk, ec_key, key_set, own_key_set, token

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


class Tokens(NamedTuple):
    """A broker that accepts tokens, and the file with its keys."""

    broker: EmbeddedBroker
    keys: Path

    def command(self, *words: str, file: Path, token: str) -> Result:
        file.write_text(token)
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": file.as_uri(),
        }
        given = [f"-X{name}={text}" for name, text in settings.items()]
        return CliRunner().invoke(main, [*words, "-b", self.broker.bootstrap, *given])


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokens]:
    keys = tmp_path_factory.mktemp("tokens") / "jwks.json"
    keys.write_bytes(own_key_set())
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{MODULE} required ;",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "connection.failed.authentication.delay.ms": "10",
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield Tokens(broker, keys)


def librdkafka(bootstrap: str, shown: str) -> list[str]:
    errors: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (shown, time.time() + 300),
        "error_cb": lambda error: errors.append(str(error)),
    }
    admin = AdminClient(settings)
    admin.poll(1)  # the client requests the token here
    try:
        admin.list_topics(timeout=5)
    except KafkaException:
        admin.poll(1)
        return errors
    return []


def test_librdkafka_logs_in_only_with_a_valid_token(tokens: Tokens) -> None:
    assert librdkafka(tokens.broker.bootstrap, token(aud="kafka")) == []
    refused = librdkafka(tokens.broker.bootstrap, token(aud="other"))
    assert any("invalid_token" in each for each in refused), refused


class Given(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def token(self) -> str:
        return token(aud="kafka")


def test_kafka_python_logs_in(tokens: Tokens) -> None:
    admin = KafkaAdminClient(
        bootstrap_servers=tokens.broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Given(),
    )
    try:
        assert admin.describe_cluster()["cluster_id"]
    finally:
        admin.close()


def test_the_command_reads_its_token_from_a_file(tokens: Tokens, tmp_path: Path) -> None:
    file = tmp_path / "token"
    listed = tokens.command("topic", "list", file=file, token=token(aud="kafka"))
    assert listed.exit_code == 0, listed.output
    bad = token(aud="other")
    refused = tokens.command("topic", "list", file=file, token=bad)
    assert refused.exit_code == ExitCode.UNAUTHORIZED
    assert 'refuses the OAUTHBEARER login: {"status":"invalid_token"}' in refused.output
    assert bad not in refused.output
    empty = tokens.command("topic", "list", file=file, token="")
    assert f"{file} does not hold a token" in empty.output


def test_a_new_key_in_the_file_is_used(tokens: Tokens, tmp_path: Path) -> None:
    new = as_jwk(ec_key("new"), "new")
    shown = token(key=ec_key("new"), key_id="new", aud="kafka")
    file = tmp_path / "token"
    assert tokens.command("topic", "list", file=file, token=shown).exit_code != 0
    tokens.keys.write_bytes(key_set(as_jwk(ec_key(), "one"), new))
    deadline = time.monotonic() + 10
    while tokens.command("topic", "list", file=file, token=shown).exit_code:
        assert time.monotonic() < deadline


class Endpoint(BaseHTTPRequestHandler):
    """Serves keys by GET, and a token by POST to clients that know the secret."""

    def do_GET(self) -> None:
        self._answer(key_set(as_jwk(ec_key(), "one")))

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Authorization"] != "Basic bWU6Y2FuYXJ5" or b"scope=a+b" not in form:
            self.send_error(401)
            return
        self._answer(f'{{"access_token":"{token("me")}","expires_in":300}}'.encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_keys_and_tokens_come_from_endpoints(endpoint: str) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"{endpoint}/keys",
    }
    client = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanism=OAUTHBEARER"]
    client += ["-X", f"sasl.oauthbearer.token.endpoint.url={endpoint}/token"]
    client += ["-X", "sasl.oauthbearer.scope=a b"]
    login = f'sasl.jaas.config={MODULE} required clientId="me" clientSecret='
    with EmbeddedBroker(settings=settings) as broker:
        client += ["-b", broker.bootstrap]
        good = CliRunner().invoke(main, ["topic", "list", *client, "-X", f'{login}"canary";'])
        assert good.exit_code == 0, good.output
        bad = CliRunner().invoke(main, ["topic", "list", *client, "-X", f'{login}"canary2";'])
    assert "/token answers 401" in bad.output
    assert "canary" not in bad.output


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "but there is no sasl.oauthbearer.jwks.endpoint.url with the keys"),
        ({"jwks.endpoint.url": "ftp://x/keys"}, "must be https://"),
        ({"jwks.endpoint.url": "file:///none/jwks.json"}, "cannot read /none/jwks.json"),
        ({"jwks.endpoint.url": "http://127.0.0.1:1/keys"}, "cannot reach http://127.0.0.1/keys"),
        ({"handler": "my.Own"}, "sasl.server.callback.handler.class has no effect"),
        ({"jaas": f'{MODULE} required unsecuredLoginStringClaim_sub="x";'}, "never accepted"),
    ],
)
def test_a_broker_without_keys_does_not_start(
    settings: dict[str, str], says: str, tmp_path: Path
) -> None:
    names = {
        "jwks.endpoint.url": "sasl.oauthbearer.jwks.endpoint.url",
        "handler": "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class",
        "jaas": "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config",
    }
    given = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        **{names[name]: text for name, text in settings.items()},
    }
    pairs = [f"--set={name}={text}" for name, text in given.items()]
    refused = CliRunner().invoke(main, ["serve", "--dir", str(tmp_path), *pairs])
    assert refused.exit_code == ExitCode.USAGE, refused.output
    assert says in refused.output


def test_brokers_log_in_to_each_other_with_tokens(tmp_path: Path) -> None:
    keys, shown = tmp_path / "jwks.json", tmp_path / "token"
    keys.write_bytes(own_key_set())
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": shown.as_uri(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:broker",
    }
    shown.write_text(token("broker"))
    with EmbeddedBroker(settings=settings, workers=2) as broker:
        tokens = Tokens(broker, keys)
        made = tokens.command("topic", "create", "t", file=shown, token=token("broker"))
    assert made.exit_code == 0, made.output
