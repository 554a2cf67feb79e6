"""What a cluster looks like at one moment, as its brokers tell any client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.groups import GroupDescription, committed_offsets, describe_group, list_groups
from penstock.client.hanging import OpenTransaction, find_hanging
from penstock.client.listing import LATEST
from penstock.client.log_dirs import LogDirDescription, describe_log_dirs
from penstock.client.metadata import NO_LEADER, ClusterMetadata, TopicMetadata
from penstock.client.offsets import list_offsets
from penstock.client.reassignment import ongoing_reassignments
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import KafkaError
from penstock.types import BrokerId, TopicPartition

ASKED = (
    "unclean.leader.election.enable",
    "default.replication.factor",
    "auto.leader.rebalance.enable",
    "transaction.max.timeout.ms",
)
MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group, and the lag of each partition in which it has an offset."""

    group: GroupDescription
    lags: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Facts; `untold` says which could not be had, and why."""

    cluster: ClusterMetadata
    topics: Sequence[TopicMetadata]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    log_dirs: Mapping[BrokerId, Sequence[LogDirDescription]] = field(default_factory=dict)
    settings: Mapping[BrokerId, Mapping[str, str]] = field(default_factory=dict)
    groups: Sequence[GroupState] = ()
    moving: Sequence[TopicPartition] = ()
    hanging: Sequence[OpenTransaction] = ()
    untold: Sequence[str] = ()


async def cluster_snapshot(client: Client, now_ms: int) -> ClusterSnapshot:
    """Ask all brokers. What one of them refuses or does not answer is noted, not raised."""
    untold: list[str] = []
    cluster, topics = await describe_cluster(client), await list_topics(client)
    min_isr: dict[str, int] = {}
    for topic in topics:
        try:
            resource = Resource(ConfigResourceType.TOPIC, topic.name)
            entry = (await describe_configs(client, resource, names=[MIN_ISR])).get(MIN_ISR)
            min_isr[topic.name] = int(entry.value) if entry and entry.value else 1
        except KafkaError as error:
            untold.append(str(error))
    log_dirs: dict[BrokerId, Sequence[LogDirDescription]] = {}
    settings: dict[BrokerId, Mapping[str, str]] = {}
    for broker in cluster.brokers:
        try:
            log_dirs[broker] = await describe_log_dirs(client, broker)
            resource = Resource(ConfigResourceType.BROKER, str(broker))
            found = await describe_configs(client, resource, names=ASKED)
            settings[broker] = {each.name: each.value or "" for each in found.values()}
        except KafkaError as error:
            untold.append(str(error))
    groups = await _groups(client, topics, untold)
    moving: list[TopicPartition] = []
    hanging: list[OpenTransaction] = []
    try:
        moving = sorted(await ongoing_reassignments(client))
        limits = [int(each.get("transaction.max.timeout.ms") or 0) for each in settings.values()]
        hanging = await find_hanging(
            client, led(topics), older_than_ms=max(limits, default=900_000), now_ms=now_ms
        )
    except KafkaError as error:
        untold.append(str(error))
    return ClusterSnapshot(
        cluster, topics, min_isr, log_dirs, settings, groups, moving, hanging, untold
    )


async def _groups(
    client: Client, topics: Sequence[TopicMetadata], untold: list[str]
) -> list[GroupState]:
    found = []
    try:
        listed = await list_offsets(client, dict.fromkeys(led(topics), LATEST))
        for each in await list_groups(client):
            group = await describe_group(client, each.id)
            committed = await committed_offsets(client, each.id)
            lags = {
                tp: max(listed[tp].offset - at.offset, 0)
                for tp, at in committed.items()
                if tp in listed
            }
            found.append(GroupState(group, lags))
    except KafkaError as error:
        untold.append(str(error))
    return found


def led(topics: Sequence[TopicMetadata]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, each.index)
        for topic in topics
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    ]
