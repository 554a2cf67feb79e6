"""A cluster loses a broker while records are delayed: none is lost, repeated or early."""

import time
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.testing.cluster import TemporaryCluster

pytestmark = pytest.mark.peer

RECORDS = 1000
ALONE = 50
SPREAD_MS = 5_000
WAIT_S = 90


@pytest.mark.row("A120")
@pytest.mark.timeout(240)
def test_a_broker_and_its_service_are_killed() -> None:
    """The broker leads the target `alone`: only records for that target wait for it."""
    settings = {"group.initial.rebalance.delay.ms": "0", "zookeeper.session.timeout.ms": "3000"}
    with TemporaryCluster(3, settings=settings) as cluster:
        config: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
        topics = [
            NewTopic("orders", 3, 3),
            NewTopic("later", 3, 3, config={"penstock.delay.to": "orders"}),
            NewTopic("alone", 1, replica_assignment=[[2]]),
            NewTopic("to-alone", 1, 3, config={"penstock.delay.to": "alone"}),
        ]
        admin = AdminClient(config)
        for made in admin.create_topics(topics).values():
            made.result(30)
        due_ms: dict[str, dict[bytes, int]] = {"orders": {}, "alone": {}}
        producer = Producer({**config, "acks": "all"})
        start_ms = time.time() * 1000 + 2000
        for topic, target, count in (("later", "orders", RECORDS), ("to-alone", "alone", ALONE)):
            for number in range(count):
                value, at_ms = b"%d" % number, round(start_ms + number * SPREAD_MS / count)
                due_ms[target][value] = at_ms
                headers: dict[str, str | bytes | None] = {"penstock-deliver-at": str(at_ms)}
                producer.produce(topic, value, value, headers=headers)
        assert producer.flush(30) == 0
        seen: defaultdict[str, list[bytes]] = defaultdict(list)
        early = []
        consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders", "alone"])

        def read_until(topic: str, count: int) -> None:
            end_s = time.monotonic() + WAIT_S
            while len(seen[topic]) < count:
                assert time.monotonic() < end_s, f"{len(seen[topic])} of {count} in {topic}"
                for each in consumer.consume(500, 0.1):
                    if each.error() is None:
                        name, value = each.topic() or "", each.value() or b""
                        seen[name].append(value)
                        if time.time() * 1000 < due_ms[name][value] - 1:
                            early.append((name, value))

        read_until("orders", RECORDS // 4)
        cluster.kill(2)
        read_until("orders", RECORDS)
        assert len(seen["alone"]) < ALONE
        cluster.start(2)
        read_until("alone", ALONE)
        end_s = time.monotonic() + 2
        while time.monotonic() < end_s:  # duplicates would arrive late
            for each in consumer.consume(500, 0.1):
                assert each.error() is not None, each.value()
        consumer.close()
    assert sorted(seen["orders"], key=int) == [b"%d" % each for each in range(RECORDS)]
    assert seen["alone"] == [b"%d" % each for each in range(ALONE)]
    assert early == []
