"""A topic as `penstock topic describe` shows it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import click

from penstock.cli.output import print_table
from penstock.cli.topic.summary import summary
from penstock.client.admin import describe_topics
from penstock.client.cluster import Client
from penstock.client.configs import (
    ConfigEntry,
    ConfigSource,
    Resource,
    describe_configs,
)
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.metadata import NO_LEADER, PartitionMetadata, TopicMetadata
from penstock.client.offsets import list_offsets
from penstock.config.resource_type import ConfigResourceType
from penstock.types import Offset, TopicPartition, uuid_text


class Described(NamedTuple):
    """A topic with its settings, and start and end offsets of partitions with a leader."""

    topic: TopicMetadata
    configs: dict[str, ConfigEntry]
    starts: dict[int, Offset]
    ends: dict[int, Offset]


async def described_topic(
    client: Client,
    name: str,
    *,
    all_configs: bool,
    wanted: Callable[[PartitionMetadata], bool] = lambda _: True,
) -> Described:
    (found,) = await describe_topics(client, [name])
    partitions = {index: each for index, each in found.partitions.items() if wanted(each)}
    found = replace(found, partitions=partitions)
    configs = await describe_configs(client, Resource(ConfigResourceType.TOPIC, name))
    led = [
        TopicPartition(name, each.index)
        for each in found.partitions.values()
        if each.leader != NO_LEADER
    ]
    starts = await list_offsets(client, dict.fromkeys(led, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(led, LATEST))
    return Described(
        found,
        {
            each.name: each
            for each in sorted(configs.values(), key=lambda entry: entry.name)
            if all_configs or each.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
        },
        {tp.partition: listed.offset for tp, listed in starts.items()},
        {tp.partition: listed.offset for tp, listed in ends.items()},
    )


def description(described: Described) -> dict[str, Any]:
    return summary(described.topic) | {
        "configs": [
            {"name": each.name, "value": each.value, "source": each.source.name}
            for each in described.configs.values()
        ],
        "partitions": [
            {
                "partition": each.index,
                "leader": None if each.leader == NO_LEADER else each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "offline": each.offline,
                "start_offset": described.starts.get(each.index),
                "end_offset": described.ends.get(each.index),
            }
            for each in described.topic.partitions.values()
        ],
    }


def print_description(described: Described) -> None:
    topic = described.topic
    click.echo(f"{topic.name}  id {uuid_text(topic.id)}" + "  internal" * topic.is_internal)
    for each in described.configs.values():
        click.echo(f"{each.name}={each.value}  {each.source.name}")
    print_table(
        ("PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"),
        [
            (
                each.index,
                "none" if each.leader == NO_LEADER else each.leader,
                each.leader_epoch,
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.isr)) or "none",
                described.starts.get(each.index, "-"),
                described.ends.get(each.index, "-"),
            )
            for each in topic.partitions.values()
        ],
    )
