"""Estimates the workload of a running cluster from its logs."""

from collections.abc import Mapping
from typing import Any

from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.groups import committed_offsets, list_groups
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.log_dirs import describe_log_dirs
from penstock.client.metadata import NO_LEADER
from penstock.client.offsets import list_offsets
from penstock.client.record_times import record_times
from penstock.clock import SystemClock
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError
from penstock.types import TopicPartition


async def observed(client: Client, only: str | None) -> dict[str, Any]:
    """Records per second since the oldest record kept, and their size on disk.

    The size on disk is already compressed, so the compression ratio is 1.
    """
    cluster = await describe_cluster(client)
    topics = [each for each in await list_topics(client) if not each.is_internal]
    topics = [each for each in topics if only in {None, each.name}]
    led = {
        TopicPartition(topic.name, each.index): each
        for topic in topics
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    }
    starts = await list_offsets(client, dict.fromkeys(led, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(led, LATEST))
    filled = {tp: starts[tp].offset for tp in led if ends[tp].offset > starts[tp].offset}
    records = sum(ends[tp].offset - at for tp, at in filled.items())
    if not records:
        raise ConfigError("the cluster has no records to go by")
    times = await record_times(client, filled)
    oldest_ms = min((each for each in times.values() if each >= 0), default=0)
    seconds = max((SystemClock().now_ms() - oldest_ms) / 1000, 1.0)
    size = 0
    for broker in cluster.brokers:
        for directory in await describe_log_dirs(client, broker, filled):
            for tp, replica in directory.replicas.items():
                if led[tp].leader == broker:
                    size += replica.size
    retentions: dict[str, int] = {}
    for topic in topics:
        resource = Resource(ConfigResourceType.TOPIC, topic.name)
        entry = (await describe_configs(client, resource, names=["retention.ms"]))["retention.ms"]
        retentions[topic.name] = int(entry.value or 0)
    readers = 0
    for group in await list_groups(client):
        readers += any(tp in led for tp in await committed_offsets(client, group.id))
    factors = [len(each.replicas) for each in led.values()]
    return {
        "messages_per_second": round(records / seconds, 3),
        "message_bytes": round(size / records, 3),
        **retention(retentions),
        "replication_factor": max(factors),
        "consumer_groups": readers,
        "brokers": len(cluster.brokers),
    }


def retention(by_topic: Mapping[str, int]) -> dict[str, float]:
    """The longest retention of the topics; none if a topic keeps its records forever.

    Forever is -1, which would count as the shortest: the plan would have no disk for that topic.
    """
    if any(each < 0 for each in by_topic.values()):
        return {}
    return {"retention_s": max(by_topic.values(), default=0) / 1000}
