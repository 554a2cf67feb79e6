"""A broker with records and a group, and its console in a separate process."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from peers.process import wait_until
from penstock.testing.broker import EmbeddedBroker
from support.console import GROUP, QUIET, get


class ConsoleOfBroker(NamedTuple):
    """The addresses of a broker and its console."""

    url: str
    bootstrap: str


@pytest.fixture(scope="module")
def console() -> Iterator[ConsoleOfBroker]:
    with EmbeddedBroker(settings={"offsets.topic.num.partitions": "1"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for _ in range(2000):
            producer.produce("orders", b"x")
        assert producer.flush(20) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP, **QUIET})
        consumer.commit(offsets=[TopicPartition("orders", 0, 10)], asynchronous=False)
        consumer.close()
        command = [sys.executable, "-m", "penstock", "console", "--listen", "127.0.0.1:0"]
        command += ["--bootstrap-server", broker.bootstrap]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        try:
            found = re.search(r"ready (http://\S+)", said := process.stdout.readline())
            assert found is not None, said
            wait_until(lambda: get(f"{found[1]}/api/v1/cluster")[0] == 200, 20, "the first look")
            yield ConsoleOfBroker(found[1], broker.bootstrap)
        finally:
            process.terminate()
            process.wait(10)
            process.stdout.close()


@pytest.fixture(scope="module")
def url(console: ConsoleOfBroker) -> str:
    return console.url


@pytest.fixture(scope="module")
def bootstrap(console: ConsoleOfBroker) -> str:
    return console.bootstrap
