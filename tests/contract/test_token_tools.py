"""Kafka's own tools with tokens: OAUTHBEARER from a token file, and delegation tokens."""

from pathlib import Path

import pytest

from peers.tools import tool
from penstock.testing.broker import EmbeddedBroker
from support.security.tokens import own_key_set, token

pytestmark = pytest.mark.peer

BEARER = "org.apache.kafka.common.security.oauthbearer"


def test_java_logs_in_with_an_access_token(tmp_path: Path) -> None:
    keys, shown = tmp_path / "jwks.json", tmp_path / "token"
    keys.write_bytes(own_key_set())
    client = tmp_path / "client.properties"
    client.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={BEARER}.OAuthBearerLoginModule required ;\n"
        f"sasl.login.callback.handler.class={BEARER}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={shown.as_uri()}\n"
    )
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={shown.as_uri()}"
    with EmbeddedBroker(settings=settings) as broker:

        def run(*words: str, check: bool = True) -> str:
            at = ("--bootstrap-server", broker.bootstrap, "--command-config", str(client))
            done = tool("kafka-topics", *at, *words, check=check, jvm=[allowed])
            return done.stdout + done.stderr

        shown.write_text(token(aud="kafka", scope="all"))
        assert "Created topic" in run("--create", "--topic", "t", "--partitions", "1")
        shown.write_text(token(aud="other", scope="all"))
        assert "invalid_token" in run("--list", check=False)


def test_a_delegation_token_is_created_used_renewed_and_expired(tmp_path: Path) -> None:
    security = "org.apache.kafka.common.security"
    plain, scram = f"{security}.plain.PlainLoginModule", f"{security}.scram.ScramLoginModule"
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{plain} required user_a="a";',
        "delegation.token.secret.key": "secret",
    }
    user, bearer = tmp_path / "user.properties", tmp_path / "bearer.properties"
    user.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={plain} required username="a" password="a";\n'
    )
    with EmbeddedBroker(settings=settings) as broker:
        at = ("--bootstrap-server", broker.bootstrap, "--command-config")

        def tokens(*words: str) -> str:
            return tool("kafka-delegation-tokens", *at, str(user), *words).stdout

        words = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:b")
        made = next(line.split() for line in tokens(*words).splitlines() if "User:a" in line)
        token_id, hmac = made[0], made[1]
        bearer.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={scram} required username="{token_id}" password="{hmac}" '
            'tokenauth="true";\n'
        )
        tool("kafka-topics", *at, str(bearer), "--list")
        assert token_id in tokens("--describe", "--owner-principal", "User:a")
        renewed = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
        assert "Completed renew operation" in renewed
        tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
        gone = tool("kafka-topics", *at, str(bearer), "--list", check=False)
        assert "Authentication failed" in gone.stdout + gone.stderr
