"""`penstock produce` in transactions, and `penstock txn abort` on an open transaction."""

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker


@pytest.fixture
def bootstrap() -> Iterator[str]:
    settings = {"transaction.state.log.num.partitions": "1"}
    with EmbeddedBroker(settings=settings) as broker:
        broker.create_topic("t", 1)
        yield broker.bootstrap


def test_records_of_a_transaction_are_reported_once_it_is_committed(bootstrap: str) -> None:
    words = ("produce", "t", "-i", "json", "--transactional-id", "x", "--format", "json")
    good, bad = '{"value": "a"}\n', "{\n"

    def run(given: str) -> Result:
        return CliRunner().invoke(main, [*words, "-b", bootstrap], input=given)

    assert [json.loads(each)["offset"] for each in run(good * 2).stdout.splitlines()] == [0, 1]
    failed = run(good * 50_000 + bad)  # more than one batch
    assert failed.exit_code != 0
    assert failed.stdout == ""


def test_an_open_transaction_is_shown_and_aborted(bootstrap: str) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "open", "log_level": 0}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"x", partition=0)
    assert producer.flush(10) == 0

    def run(*words: str) -> str:
        result = CliRunner().invoke(main, [*words, "-b", bootstrap, "--format", "json"])
        assert result.exit_code == 0, result.output
        return result.stdout

    (listed,) = map(json.loads, run("txn", "list", "--state", "Ongoing").splitlines())
    assert listed["id"] == "open"
    assert json.loads(run("txn", "describe", "open"))["partitions"] == ["t-0"]
    (active,) = map(json.loads, run("producer", "list", "t").splitlines())
    assert active["transaction_start"] == 0
    # Its coordinator knows the transaction, so it does not hang, however old it is.
    assert run("txn", "hanging", "t", "--older-than", "0.001") == ""
    assert json.loads(run("txn", "abort", "t", "0", "--start-offset", "0"))["aborted"]
    (active,) = map(json.loads, run("producer", "list", "t").splitlines())
    assert active["transaction_start"] is None
