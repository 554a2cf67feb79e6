"""`penstock acl`, `user` and `quota`, on a broker with an authorizer; and a canary secret."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker

CANARY = "canary-3f9d0c71"
"""The password of a user. It must appear nowhere but in the user's own login."""

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_plain="{CANARY}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "connection.failed.authentication.delay.ms": "10",
}


class Commands:
    def __init__(self, broker: EmbeddedBroker) -> None:
        self._plain = broker.running.state.listeners["PLAINTEXT"]
        self.sasl = broker.running.state.listeners["SASL_PLAINTEXT"]

    def run(self, *words: str, stdin: str | bytes = "", at: str | None = None) -> Result:
        where = ("--bootstrap", at or self._plain)
        return CliRunner().invoke(main, [*words, *where], input=stdin)

    def rows(self, *words: str) -> list[Any]:
        done = self.run(*words, "--format", "json")
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def commands(folder: Path) -> Iterator[Commands]:
    with EmbeddedBroker(settings=SETTINGS, directory=folder) as broker:
        broker.create_topic("payments", 1)
        yield Commands(broker)


def login(password: str) -> tuple[str, ...]:
    pairs = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "bob",
        "sasl.password": password,
    }
    return tuple(word for pair in pairs.items() for word in ("-X", "=".join(pair)))


def test_a_secret_is_in_no_log_file_or_response(
    commands: Commands, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reported = [
        commands.run("user", "create", "bob", stdin=f"{CANARY}\n"),
        commands.run("topic", "list", *login(CANARY), at=commands.sasl),
        commands.run("topic", "list", *login(CANARY + "x"), at=commands.sasl),
        commands.run("user", "list", "--format", "json"),
        commands.run("broker", "describe", "1", "--format", "json"),
    ]
    assert [each.exit_code for each in reported] == [0, 0, 4, 0, 0], [
        each.output for each in reported
    ]
    assert CANARY not in "".join(each.output for each in reported)
    assert CANARY not in caplog.text
    for path in folder.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path
    assert commands.run("user", "delete", "bob", "--yes").exit_code == 0
    refused = commands.run("topic", "list", *login(CANARY), at=commands.sasl)
    assert refused.exit_code == 4


def test_users_are_listed_with_their_mechanisms(commands: Commands) -> None:
    commands.run("user", "create", "carol", "--iterations", "4096", stdin="p\n")
    commands.run("user", "create", "carol", "--mechanism", "SCRAM-SHA-256", stdin="p\n")
    (found,) = commands.rows("user", "describe", "carol")
    assert found == {
        "user": "carol",
        "mechanisms": {"SCRAM-SHA-256": 8192, "SCRAM-SHA-512": 4096},
    }
    assert commands.run("user", "delete", "carol", "--yes").exit_code == 0
    unknown = commands.run("user", "describe", "carol")
    assert "no user carol logs in by SCRAM" in unknown.output
    empty = commands.run("user", "create", "carol", stdin="\n")
    assert (empty.exit_code, "the password is empty" in empty.output) == (2, True)


def explained(commands: Commands, *words: str) -> tuple[bool, str, Any]:
    (found,) = commands.rows("acl", "explain", *words)
    return found["allowed"], found["reason"], found["rule"]


def test_acls_are_created_explained_and_deleted(commands: Commands) -> None:
    allowed, why, _ = explained(commands, "bob", "read", "topic:payments")
    assert not allowed
    assert why == "there is no rule for topic:payments, and allow.everyone.if.no.acl.found is false"
    for rule in (
        ("bob", "all", "topic:pay*"),
        ("bob", "write", "topic:payments", "--deny", "--host", "10.0.0.1"),
        ("eve", "read", "group:g"),
    ):
        assert commands.run("acl", "create", *rule).exit_code == 0
    allowed, why, rule = explained(commands, "bob", "read", "topic:payments")
    assert (allowed, rule["resource"]) == (True, "topic:pay*")
    assert why == "this rule allows it, and none denies it"
    denied = ("bob", "write", "topic:payments", "--host", "10.0.0.1")
    allowed, why, rule = explained(commands, *denied)
    assert (allowed, rule["permission"], rule["host"]) == (False, "deny", "10.0.0.1")
    assert why == "this rule denies it, and a deny wins"
    allowed, why, _ = explained(commands, "eve", "describe", "topic:payments")
    assert why == "there are rules for topic:payments, and none of them allows it to User:eve"
    allowed, why, rule = explained(commands, "bob", "idempotent-write", "cluster")
    assert (allowed, rule["resource"]) == (True, "topic:pay*")
    assert (
        why
        == "a user that may write to some topic may write idempotently, and this rule allows that"
    )
    assert not explained(commands, "eve", "idempotent-write", "cluster")[0]
    assert explained(commands, "admin", "alter", "cluster")[:2] == (
        True,
        "User:admin is in super.users",
    )
    assert len(commands.rows("acl", "list", "--principal", "bob")) == 2
    assert len(commands.rows("acl", "delete", "--principal", "bob", "--yes")) == 2
    (left,) = commands.rows("acl", "list")
    assert left["principal"] == "User:eve"


def test_quotas_are_set_and_removed(commands: Commands) -> None:
    of = ("--user", "bob", "--client-id", "<default>")
    commands.run("quota", "set", *of, "producer_byte_rate=12345678", "request_percentage=12.5")
    commands.run("quota", "set", "--ip", "127.0.0.9", "connection_creation_rate=7")
    expected = {"user": "bob", "client_id": "<default>", "ip": None}
    limits = {"producer_byte_rate": 12345678.0, "request_percentage": 12.5}
    assert commands.rows("quota", "describe", *of) == [{**expected, "quotas": limits}]
    assert (
        "producer_byte_rate=12345678, request_percentage=12.5"
        in commands.run("quota", "list").output
    )
    assert len(commands.rows("quota", "list")) == 2
    commands.run("quota", "unset", *of, "producer_byte_rate", "request_percentage")
    commands.run("quota", "unset", "--ip", "127.0.0.9", "connection_creation_rate")
    assert commands.rows("quota", "list") == []


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("acl", "create", "bob", "fly", "topic:t"), "'fly' is not an operation"),
        (("acl", "create", "bob", "read", "table:t"), "'table' is not a type of resource"),
        (("acl", "create", "bob", "read", "topic"), "'topic' names no resource"),
        (("acl", "create", "bob", "alter", "group:g"), "a group knows only alter-configs"),
        (("acl", "create", "bob", "read", "topic:t", "--deny", "--host", "box"), "an IP address"),
        (("acl", "create", "bob", "read", "topic:t", "--host", "10.0.0.0/8"), "an IP address"),
        (("acl", "explain", "bob", "read", "topic:t*"), "'topic:t*' is a pattern"),
        (("acl", "delete"), "say which: --principal"),
        (("quota", "set", "producer_byte_rate=1"), "say whose quota"),
        (("quota", "set", "--user", "u", "bytes=1"), "'bytes' is not a quota"),
        (("quota", "set", "--user", "u", "producer_byte_rate"), "producer_byte_rate: has no value"),
        (("quota", "set", "--user", "u", "producer_byte_rate=-1"), "must be greater than 0"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(
    commands: Commands, words: tuple[str, ...], reported: str
) -> None:
    done = commands.run(*words)
    assert done.exit_code != 0
    assert reported in done.output
    assert "Traceback" not in done.output


def test_a_password_that_is_not_text_is_refused_and_not_quoted(commands: Commands) -> None:
    done = commands.run("user", "create", "bytes", stdin=CANARY.encode() + b"\xff\n")
    assert (done.exit_code, done.output) == (2, "penstock: the password is not UTF-8\n")
