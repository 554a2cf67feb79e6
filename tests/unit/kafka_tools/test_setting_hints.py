"""Settings under old or misspelt names: the hint names the intended one."""

import pytest

from penstock.config.broker import broker_settings
from penstock.config.unknown import unknown
from support.commands.kafka_tool import call_tool


@pytest.mark.row("A175")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("transaction.id.timeout.ms", "transactional.id.expiration.ms"),
        ("max.transaction.timeout.ms", "transaction.max.timeout.ms"),
        ("replica.lag.time.ms", "replica.lag.time.max.ms"),
        ("compress.type", "compression.type"),
    ],
)
def test_a_broker_warns_with_the_intended_setting(given: str, meant: str) -> None:
    assert str(unknown(given, broker_settings())).endswith(f"did you mean {meant}?")
    assert meant in broker_settings()


@pytest.mark.row("A175")
def test_clients_and_topics_get_the_hint_too() -> None:
    nobody = ("--broker-list", "127.0.0.1:1", "--topic", "t")
    old = ("--producer-property", "request.required.acks=1")
    done = call_tool("kafka-console-producer.sh", *nobody, *old)
    assert "request.required.acks is not a setting; did you mean acks?" in done.err
    words = ("--bootstrap-server", "127.0.0.1:1", "--create", "--topic", "t")
    done = call_tool("kafka-topics.sh", *words, "--config", "compress.type=gzip")
    assert "compress.type is not a setting; did you mean compression.type?" in done.err
    reset = ("--consumer-property", "auto.offset.reset=smallest")
    done = call_tool("kafka-console-consumer.sh", *nobody, *reset)
    assert "did you mean earliest?" in done.err
