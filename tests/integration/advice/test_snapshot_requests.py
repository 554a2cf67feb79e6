"""A snapshot of a cluster sends a few requests for its topics, not one per topic and group."""

import asyncio
from urllib.request import urlopen

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.advice.remembered import Remembered
from penstock.advice.snapshot import ClusterSnapshot, cluster_snapshot
from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.testing.broker import EmbeddedBroker
from support.metrics_page import parsed

GROUPS = 12


def requests(broker: EmbeddedBroker) -> dict[str, float]:
    with urlopen(f"http://{broker.http}/metrics", timeout=10) as response:
        page = parsed(response.read().decode())
    found: dict[str, float] = {}
    for (_, labels), value in page["kafka_network_requestmetrics_requests_total"][2].items():
        name = dict(labels)["request"]
        found[name] = found.get(name, 0) + value
    return found


async def looked(bootstrap: str, memory: Remembered, now_ms: int = 0) -> ClusterSnapshot:
    async with Client(parse_addresses(bootstrap)) as client:
        return await cluster_snapshot(client, now_ms, memory)


def test_the_requests_of_a_snapshot_do_not_multiply() -> None:
    with EmbeddedBroker(settings={"offsets.topic.num.partitions": "1"}) as broker:
        servers = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
        producer = Producer(servers)
        for number in range(GROUPS):
            producer.produce(f"t{number}", b"x")
        assert producer.flush(20) == 0
        for number in range(GROUPS):
            consumer = Consumer({**servers, "group.id": f"g{number}"})
            offsets = [TopicPartition(f"t{number}", 0, 0)]
            consumer.commit(offsets=offsets, asynchronous=False)
            consumer.close()
        del producer  # it would send metadata requests of its own
        before = requests(broker)
        memory = Remembered()
        seen = asyncio.run(looked(broker.bootstrap, memory))
        after = requests(broker)
        again = asyncio.run(looked(broker.bootstrap, memory, 5_000))
        third = requests(broker)
    assert [each.group.id for each in seen.groups] == sorted(f"g{n}" for n in range(GROUPS))
    assert all(sum(each.lags.values()) == 1 for each in seen.groups)
    assert seen.failed_requests == []
    asked = {name: count - before.get(name, 0) for name, count in after.items()}
    assert asked["Metadata"] <= 6
    assert asked["DescribeConfigs"] <= 3
    assert asked["DescribeGroups"] == asked["OffsetFetch"] == 1, "all groups of a coordinator"
    assert asked["Fetch"] == GROUPS, "one for each position, to tell its time"
    assert all(each.unread_since_ms for each in seen.groups)
    assert [each.unread_ms for each in again.groups] == [each.unread_ms for each in seen.groups]
    assert again.min_isr == seen.min_isr
    asked = {name: count - after[name] for name, count in third.items()}
    assert asked["Fetch"] == 0, "the record at a position stays the same"
    assert asked["DescribeConfigs"] == 1, "of the broker, no topics"
