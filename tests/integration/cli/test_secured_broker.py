"""`penstock` commands against a broker with authentication and ACLs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.cli.failure import ExitCode
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.security.certificates import certified

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Command:
    """Runs commands as a user."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap, self._folder = bootstrap, folder

    def run(self, user: str, *words: str, password: str = "a", more: str = "") -> Result:
        file = self._folder / f"{user}.properties"
        file.write_text(
            f"bootstrap.servers={self.bootstrap}\n"
            "security.protocol=SASL_SSL\n"
            "sasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={PLAIN} required username="{user}" password="{password}";\n'
            f"ssl.truststore.location={self._folder}/broker.cert.pem\n{more}"
        )
        return CliRunner().invoke(main, [*words, "--command-config", str(file)])


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    folder = tmp_path_factory.mktemp("secured")
    keys = certified(folder, "broker")
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_SSL",
        "ssl.keystore.location": str(keys.store),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{PLAIN} required user_admin="a" user_alice="a";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "connection.failed.authentication.delay.ms": "10",
    }
    with EmbeddedBroker(settings=settings) as broker:
        yield Command(broker.bootstrap, folder)


def test_a_super_user_sees_everything_and_another_user_nothing(command: Command) -> None:
    created = command.run("admin", "topic", "create", "payments")
    assert created.exit_code == 0, created.output
    assert "payments" in command.run("admin", "topic", "list").output
    listed = command.run("alice", "topic", "list")
    assert (listed.exit_code, "payments" in listed.output) == (0, False)
    refused = command.run("alice", "topic", "create", "orders")
    assert refused.exit_code != 0
    assert "Authorization failed" in refused.output or "AUTHORIZATION" in refused.output


def test_a_wrong_password_is_reported_in_one_line(command: Command) -> None:
    refused = command.run("alice", "topic", "list", password="canary")
    assert refused.exit_code == ExitCode.UNAUTHORIZED
    assert "refuses the login of 'alice': Authentication failed" in refused.output
    assert "canary" not in refused.output


def test_a_setting_on_the_command_line_wins(command: Command) -> None:
    refused = command.run("admin", "topic", "list", "-X", "sasl.mechanism=SCRAM-SHA-256")
    assert "does not name a login module for SCRAM-SHA-256" in refused.output
    wrong = command.run("admin", "topic", "list", "-X", "sasl.mechanism")
    assert (wrong.exit_code, "-X must be name=value" in wrong.output) == (ExitCode.USAGE, True)


def test_tls_on_one_side_only_is_reported_with_the_settings_to_use(command: Command) -> None:
    plain = CliRunner().invoke(main, ["topic", "list", "-b", command.bootstrap])
    assert plain.exit_code == ExitCode.UNREACHABLE
    assert "it seems to speak TLS, or is not a Kafka broker; pass its security" in plain.output
    assert "--command-config FILE, or -X security.protocol=SSL" in plain.output
    assert "start a broker" not in plain.output
    with EmbeddedBroker() as open_broker:
        words = ["topic", "list", "-b", open_broker.bootstrap]
        secured = command.run("admin", *words)
    assert secured.exit_code == ExitCode.UNREACHABLE
    assert "does not seem to speak TLS, which security.protocol asks for" in secured.output
    assert "look at security.protocol" in secured.output
    assert "-X security.protocol=SSL" not in secured.output, "it is said already"


def test_an_untrusted_certificate_is_reported(command: Command) -> None:
    words = ["topic", "list", "-b", command.bootstrap, "-X", "security.protocol=SSL"]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == ExitCode.UNREACHABLE
    assert "its certificate is not accepted: self-signed certificate" in refused.output
    assert "ssl.truststore.location (which certificates to trust)" in refused.output


def test_a_missing_login_is_reported(command: Command) -> None:
    refused = command.run("admin", "topic", "list", "-X", "security.protocol=SSL")
    assert refused.exit_code == ExitCode.UNREACHABLE
    assert "was lost at the first request; perhaps it asks for a login" in refused.output


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "create", "t"),
        ("broker", "config", "1"),
        ("config", "set", "broker", "default", "log.retention.ms=1"),
        ("reassign", "watch"),
        ("leader", "elect"),
    ],
)
def test_a_forbidden_command_is_reported_in_one_line(
    command: Command, words: tuple[str, ...]
) -> None:
    refused = command.run("alice", *words)
    assert refused.exit_code == 4, refused.output
    assert refused.stderr.count("\n") == 1
    assert "AUTHORIZATION_FAILED" in refused.stderr
