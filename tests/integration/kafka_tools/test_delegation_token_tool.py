"""`kafka-delegation-tokens.sh`: a client logs in with a token until it expires."""

from pathlib import Path

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import ToolResult, call_tool

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} required user_a="a";',
    "delegation.token.secret.key": "secret",
}


def test_a_token_is_created_used_renewed_and_expired(tmp_path: Path) -> None:
    user, bearer = tmp_path / "user.properties", tmp_path / "bearer.properties"
    user.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={PLAIN} required username="a" password="a";\n'
    )
    with EmbeddedBroker(settings=SETTINGS) as broker:
        at = ("--bootstrap-server", broker.bootstrap, "--command-config")

        def tokens(*words: str) -> ToolResult:
            return call_tool("kafka-delegation-tokens.sh", *at, str(user), *words)

        def topics() -> ToolResult:
            return call_tool("kafka-topics.sh", *at, str(bearer), "--list")

        words = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:b")
        made = tokens(*words).out.splitlines()
        token_id, hmac, owner, requester, *_ = made[-1].split()
        assert made[1] == f"Created delegation token with tokenId : {token_id}"
        assert (owner, requester) == ("User:a", "User:a")
        bearer.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={SCRAM} required username="{token_id}" password="{hmac}" '
            'tokenauth="true";\n'
        )
        assert topics().code == 0
        assert "Total number of tokens : 1\n" in tokens("--describe").out
        renewed = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac).out
        assert "Completed renew operation. New expiry date : " in renewed
        assert tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac).code == 0
        assert "Total number of tokens : 0\n" in tokens("--describe").out
        assert topics().code == 1
        gone = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
        assert gone.code == 1
        assert gone.err == (
            "org.apache.kafka.common.errors.DelegationTokenNotFoundException: Delegation Token is "
            "not found on server.\n"
        )
        wrong = tokens("--renew", "--renew-time-period", "-1", "--hmac", "bad!")
        assert (wrong.code, wrong.err.count("\n")) == (1, 1)
