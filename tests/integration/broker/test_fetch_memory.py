"""Fetched records stay in files; other brokers hold partitions times fetch size in memory."""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.testing.broker import EmbeddedBroker
from penstock.testing.topics import make_topic
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support.brokers.wire_link import WireLink

PARTITIONS, RECORD_BYTES, CLIENTS = 32, 900_000, 40


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.row("A158")
def test_clients_that_fetch_much_and_read_nothing_cost_no_memory() -> None:
    with EmbeddedBroker() as broker, ExitStack() as stack:
        make_topic(broker.bootstrap, "large", PARTITIONS, 1, None)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        for index in range(PARTITIONS):
            producer.produce("large", os.urandom(RECORD_BYTES), partition=index)
            assert producer.flush(10) == 0
        wanted = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(PARTITIONS)
        ]
        fetch = FetchRequest(
            replica_id=-1,
            max_bytes=1 << 30,
            max_wait_ms=0,
            topics=[FetchTopic(topic="large", partitions=wanted)],
        )
        before = resident_bytes()
        for _ in range(CLIENTS):
            stack.enter_context(WireLink(broker.bootstrap)).post(fetch, 11)
        with WireLink(broker.bootstrap) as link:
            for _ in range(100):
                link.ask(ApiVersionsRequest(), 0)  # lets the loop run its turns
        grown = resident_bytes() - before
    assert grown < PARTITIONS * RECORD_BYTES, "a thirtieth of what was asked for"
