"""A broker whose topics, groups and transactions are always the same."""

from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from penstock.broker.startup.state_file import write_state
from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker
from support.commands.command_stage import Stage

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "num.partitions": "1",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """`events` has three records in two partitions, of which `billing` has read one."""
    folder = tmp_path_factory.mktemp("stage")
    with EmbeddedBroker(directory=folder, settings=SETTINGS) as broker:
        broker.create_topic("events", 2, configs={"retention.ms": "9000000000000"})
        broker.create_topic("other", 1)
        broker.create_topic("measured", 1)
        write_state(folder, broker.state)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": "payments",
                "log_level": 0,
            }
        )
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("other", b"paid", partition=0, timestamp=1_700_000_000_000)
        producer.commit_transaction(10)
        for words, typed in (
            (["produce", "events", "-p", "0", "-t", "1700000000000"], "a\nb\n"),
            (["produce", "events", "-p", "1", "-t", "1700000000000"], "c\n"),
            (["group", "reset", "billing", "--to", "1", "-t", "events", "--execute"], ""),
        ):
            done = CliRunner().invoke(main, [*words, "-b", broker.bootstrap], input=typed)
            assert done.exit_code == 0, done.output
        yield Stage(folder, broker.bootstrap)
