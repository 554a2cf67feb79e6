"""Delegation tokens through the commands: created, used to log in, renewed, expired and removed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
CANARY = "canary-of-all-tokens"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'{PLAIN} required user_alice="a" user_bob="a" user_carol="a";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "connection.failed.authentication.delay.ms": "10",
}


def run(broker: EmbeddedBroker, login: str, mechanism: str, *words: str) -> Result:
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": login,
    }
    given = [f"-X{name}={text}" for name, text in settings.items()]
    address = broker.running.state.listeners["SASL_PLAINTEXT"]
    return CliRunner().invoke(main, [*words, "-b", address, *given])


def as_user(broker: EmbeddedBroker, name: str, *words: str) -> Result:
    return run(broker, f'{PLAIN} required username="{name}" password="a";', "PLAIN", *words)


def by_token(broker: EmbeddedBroker, made: dict[str, str], *words: str) -> Result:
    login = f'username="{made["id"]}" password="{made["hmac"]}" tokenauth="true"'
    return run(broker, f"{SCRAM} required {login};", "SCRAM-SHA-256", *words)


def created(broker: EmbeddedBroker, user: str, *words: str) -> dict[str, str]:
    done = as_user(broker, user, "token", "create", *words, "--format", "json")
    assert done.exit_code == 0, done.output
    found: dict[str, str] = json.loads(done.output)
    return found


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    settings = {
        "delegation.token.secret.key": CANARY,
        "delegation.token.expiry.check.interval.ms": "200",
    }
    with EmbeddedBroker(settings=SETTINGS | settings) as broker:
        yield broker


def test_a_token_logs_in_but_creates_no_other_token(broker: EmbeddedBroker) -> None:
    made = created(broker, "alice", "--renewer", "User:bob")
    assert made["owner"] == "User:alice"
    assert by_token(broker, made, "topic", "list").exit_code == 0
    again = by_token(broker, made, "token", "create")
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in again.output
    wrong = by_token(broker, made | {"hmac": "x"}, "topic", "list")
    assert wrong.exit_code == ExitCode.UNAUTHORIZED
    listed = as_user(broker, "bob", "token", "list")
    assert made["id"] in listed.output
    assert made["hmac"] not in listed.output
    assert made["id"] not in as_user(broker, "carol", "token", "list").output


def test_a_token_is_renewed_and_expired_by_its_id(broker: EmbeddedBroker) -> None:
    made = created(broker, "alice", "--renewer", "User:bob")
    renewed = as_user(broker, "bob", "token", "renew", made["id"], "--period-ms", "60000")
    assert f"token {made['id']} ends 20" in renewed.output
    ended = as_user(broker, "alice", "token", "expire", made["id"], "--format", "json")
    assert json.loads(ended.stdout).keys() == {"id", "expires"}
    assert by_token(broker, made, "topic", "list").exit_code == ExitCode.UNAUTHORIZED
    gone = as_user(broker, "alice", "token", "expire", made["id"])
    assert f"there is no token {made['id']}" in gone.output


def test_a_tokens_owner_must_be_a_user(broker: EmbeddedBroker) -> None:
    """A login with the token is a login as a user, so ACLs must be checked for that user."""
    anonymous = ["-b", broker.running.state.listeners["PLAINTEXT"]]
    for rule in (["user:*"], ["user:User:ANONYMOUS", "--deny"]):
        words = ["acl", "create", "carol", "create-tokens", *rule]
        assert CliRunner().invoke(main, [*words, *anonymous]).exit_code == 0
    for owner, code in (
        ("User:ANONYMOUS", "DELEGATION_TOKEN_AUTHORIZATION_FAILED"),
        ("Group:ANONYMOUS", "INVALID_PRINCIPAL_TYPE"),
    ):
        refused = as_user(broker, "carol", "token", "create", "--owner", owner)
        assert code in refused.output


def test_an_expired_token_is_removed(broker: EmbeddedBroker) -> None:
    made = created(broker, "carol", "--max-lifetime-ms", "1")
    deadline = time.monotonic() + 10
    while made["id"] in as_user(broker, "carol", "token", "list").output:
        assert time.monotonic() < deadline


def test_tokens_survive_a_restart_and_the_secret_is_stored_nowhere(tmp_path: Path) -> None:
    settings = SETTINGS | {"delegation.token.master.key": CANARY}
    with EmbeddedBroker(settings=settings, directory=tmp_path) as broker:
        made = created(broker, "alice")
    with EmbeddedBroker(settings=settings, directory=tmp_path) as broker:
        assert by_token(broker, made, "topic", "list").exit_code == 0
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert CANARY.encode() not in file.read_bytes(), file
            assert made["hmac"].encode() not in file.read_bytes(), file


def test_without_a_secret_token_requests_are_refused() -> None:
    with EmbeddedBroker(settings=SETTINGS) as broker:
        for words in (("create",), ("list",)):
            refused = as_user(broker, "alice", "token", *words)
            assert "DELEGATION_TOKEN_AUTH_DISABLED" in refused.output
