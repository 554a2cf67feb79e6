"""Kafka's own tools with tokens: OAUTHBEARER by a token in a file."""

from pathlib import Path

import pytest

from peers.tools import tool
from penstock.testing.broker import EmbeddedBroker
from support.security.tokens import own_key_set, token

pytestmark = pytest.mark.peer

BEARER = "org.apache.kafka.common.security.oauthbearer"


def test_java_logs_in_by_an_access_token(tmp_path: Path) -> None:
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
