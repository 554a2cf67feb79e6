"""Plans of `kafka-reassign-partitions.sh`: reading and generating them."""

import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.log_dirs import describe_log_dirs
from penstock.client.metadata import TopicMetadata
from penstock.client.reassignment_plan import (
    ANY_DIRECTORY,
    BadPlan,
    ReassignmentPlan,
    TargetReplicas,
    parse_plan,
    plan_json,
)
from penstock.controller.placement import InvalidReplicationFactor, placed
from penstock.kafka_tools.partition_json import field, listed, read_json
from penstock.kafka_tools.tool import ToolError
from penstock.types import BrokerId, TopicPartition


def read_plan(path: str) -> ReassignmentPlan:
    about = f"--reassignment-json-file {path}"
    try:
        return parse_plan(Path(path).read_bytes())
    except OSError as error:
        raise ToolError(f"{about}: {error.strerror}") from None
    except BadPlan as error:
        raise ToolError(f"{about}: {error}") from None


def read_topics(path: str) -> list[str]:
    about = f"--topics-to-move-json-file {path}"
    document = read_json(path, "topics-to-move-json-file")
    names = [field(row, "topic", str, about) for row in listed(document, "topics", about)]
    if len(set(names)) < len(names):
        raise ToolError(f"List of topics to reassign contains duplicate entries: {names}")
    return names


async def generate(
    client: Client, topics: Iterable[str], brokers: str, *, rack_aware: bool
) -> None:
    """Print the current assignment, and a proposal for the given brokers."""
    try:
        wanted = [BrokerId(int(each)) for each in brokers.split(",")]
    except ValueError:
        raise ToolError(f"--broker-list {brokers}: must be like 0,1,2") from None
    if len(set(wanted)) < len(wanted):
        raise ToolError("Broker list contains duplicate entries")
    cluster = await describe_cluster(client)
    if unknown := sorted(set(wanted) - set(cluster.brokers)):
        raise ToolError(f"Unknown broker id {unknown[0]}")
    known = {each.name: each for each in await list_topics(client)}
    racks = {each: cluster.brokers[each].rack if rack_aware else None for each in sorted(wanted)}
    hosts = {each: cluster.brokers[each].address.host for each in wanted}
    current: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    proposed: ReassignmentPlan = {}
    for name in topics:
        if name not in known:
            raise ToolError(
                "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic "
                f"{name} not found."
            )
        current |= _replicas(known[name])
        proposed |= proposal(known[name], racks, hosts)
    print("Current partition replica assignment")
    print(plan_json(await with_directories(client, current)))
    print()
    print("Proposed partition reassignment configuration")
    print(plan_json(proposed))


def _replicas(topic: TopicMetadata) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    return {
        TopicPartition(topic.name, index): partition.replicas
        for index, partition in topic.partitions.items()
    }


def proposal(
    topic: TopicMetadata, racks: Mapping[BrokerId, str | None], hosts: Mapping[BrokerId, str]
) -> ReassignmentPlan:
    factor = len(next(iter(topic.partitions.values())).replicas)
    start = random.randrange(len(racks))  # noqa: S311  only spreads leaders
    shift = random.randrange(len(racks))  # noqa: S311
    try:
        assigned = placed(
            racks, len(topic.partitions), factor, start=start, shift=shift, hosts=hosts
        )
    except InvalidReplicationFactor as refused:
        raise ToolError(str(refused)) from None
    return {
        TopicPartition(topic.name, index): TargetReplicas(
            replicas, (ANY_DIRECTORY,) * len(replicas)
        )
        for index, replicas in assigned.items()
    }


async def with_directories(
    client: Client, replicas: Mapping[TopicPartition, tuple[BrokerId, ...]]
) -> ReassignmentPlan:
    """The assignment with the log directory of each replica, if its broker reports it."""
    found: dict[tuple[TopicPartition, BrokerId], str] = {}
    live = (await describe_cluster(client)).brokers
    for broker in sorted({each for brokers in replicas.values() for each in brokers} & set(live)):
        for directory in await describe_log_dirs(client, broker, replicas):
            for partition, replica in directory.replicas.items():
                if not replica.is_future:
                    found[partition, broker] = directory.path
    return {
        partition: TargetReplicas(
            brokers, tuple(found.get((partition, each), ANY_DIRECTORY) for each in brokers)
        )
        for partition, brokers in replicas.items()
    }
