"""A snapshot of a cluster at one moment, from what its brokers tell any client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.advice.remembered import Remembered
from penstock.advice.unread_times import UnreadTimes
from penstock.client.admin import describe_cluster, list_topics
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.client.group_description import GroupDescription
from penstock.client.hanging import OpenTransaction, find_hanging
from penstock.client.listing import LATEST
from penstock.client.log_dirs import LogDirDescription, describe_log_dirs
from penstock.client.many_groups import all_groups
from penstock.client.metadata import NO_LEADER, ClusterMetadata, TopicMetadata
from penstock.client.offsets import list_offsets
from penstock.client.reassignment import ongoing_reassignments
from penstock.client.record_times import RecordPosition
from penstock.client.share_groups import SHARE, share_offsets
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import KafkaError
from penstock.types import BrokerId, Offset, TopicPartition

ASKED = (
    "unclean.leader.election.enable",
    "default.replication.factor",
    "auto.leader.rebalance.enable",
    "transaction.max.timeout.ms",
)
LONG_LAG = 1000


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group, and its lag in each partition where it has an offset."""

    group: GroupDescription
    lags: Mapping[TopicPartition, int]
    unread_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The timestamp of the first unread record, where there is one and it is known."""

    @property
    def unread_since_ms(self) -> int | None:
        return min(self.unread_ms.values(), default=None)


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Facts about a cluster; `failed_requests` has the errors of requests for more of them."""

    cluster: ClusterMetadata
    topics: Sequence[TopicMetadata]
    min_isr: Mapping[str, int] = field(default_factory=dict)
    log_dirs: Mapping[BrokerId, Sequence[LogDirDescription]] = field(default_factory=dict)
    settings: Mapping[BrokerId, Mapping[str, str]] = field(default_factory=dict)
    groups: Sequence[GroupState] = ()
    moving: Sequence[TopicPartition] = ()
    hanging: Sequence[OpenTransaction] = ()
    failed_requests: Sequence[str] = ()
    ends: Mapping[TopicPartition, Offset] = field(default_factory=dict)


async def cluster_snapshot(
    client: Client, now_ms: int, memory: Remembered | None = None
) -> ClusterSnapshot:
    """Query all brokers. Errors of single requests are collected, not raised.

    `memory` caches data between repeated snapshots.
    """
    failed_requests: list[str] = []
    cluster, topics = await describe_cluster(client), await list_topics(client)
    memory = memory or Remembered()
    min_isr = await memory.min_isr(client, [each.name for each in topics], now_ms, failed_requests)
    log_dirs: dict[BrokerId, Sequence[LogDirDescription]] = {}
    settings: dict[BrokerId, Mapping[str, str]] = {}
    for broker in cluster.brokers:
        try:
            log_dirs[broker] = await describe_log_dirs(client, broker)
            resource = Resource(ConfigResourceType.BROKER, str(broker))
            found = await describe_configs(client, resource, names=ASKED)
            settings[broker] = {each.name: each.value or "" for each in found.values()}
        except KafkaError as error:
            failed_requests.append(str(error))
    ends: dict[TopicPartition, Offset] = {}
    groups: list[GroupState] = []
    try:
        listed = await list_offsets(client, dict.fromkeys(led(topics), LATEST))
        ends = {tp: each.offset for tp, each in listed.items()}
        groups = await _groups(client, topics, ends, failed_requests, memory.times)
    except KafkaError as error:
        failed_requests.append(str(error))
    moving: list[TopicPartition] = []
    hanging: list[OpenTransaction] = []
    try:
        moving = sorted(await ongoing_reassignments(client))
        limits = [int(each.get("transaction.max.timeout.ms") or 0) for each in settings.values()]
        hanging = await find_hanging(
            client, led(topics), older_than_ms=max(limits, default=900_000), now_ms=now_ms
        )
    except KafkaError as error:
        failed_requests.append(str(error))
    return ClusterSnapshot(
        cluster, topics, min_isr, log_dirs, settings, groups, moving, hanging, failed_requests, ends
    )


async def _groups(
    client: Client,
    topics: Sequence[TopicMetadata],
    ends: Mapping[TopicPartition, Offset],
    failed_requests: list[str],
    times: UnreadTimes,
) -> list[GroupState]:
    """The states of all groups, in few requests, because there may be thousands."""
    many = await all_groups(client, {each.id: each.name for each in topics})
    failed_requests += map(str, many.failures)
    found: list[GroupState] = []
    positions: dict[str, dict[TopicPartition, Offset]] = {}
    for group in many.groups:
        if group.type == SHARE:
            try:
                shared = await share_offsets(client, group.id)
            except KafkaError as error:
                failed_requests.append(str(error))
                continue
            lags = {tp: each.lag for tp, each in shared.items() if each.lag >= 0}
            at = {tp: Offset(each.start) for tp, each in shared.items() if each.start >= 0}
        else:
            at = {tp: each.offset for tp, each in many.committed.get(group.id, {}).items()}
            lags = {tp: max(ends[tp] - offset, 0) for tp, offset in at.items() if tp in ends}
        positions[group.id] = {tp: at[tp] for tp, lag in lags.items() if lag and tp in at}
        found.append(GroupState(group, lags))
    try:
        known = await times.of(client, wanted(found, positions))
    except KafkaError as error:
        failed_requests.append(str(error))
        return found
    return [
        replace(
            each,
            unread_ms={
                at.partition: known[at]
                for at in map(RecordPosition._make, positions[each.group.id].items())
                if at in known
            },
        )
        for each in found
    ]


def wanted(
    groups: Sequence[GroupState], positions: Mapping[str, Mapping[TopicPartition, Offset]]
) -> list[RecordPosition]:
    """The positions whose timestamps are needed, longest lag first: one look may not fetch all."""
    by_lag = sorted(groups, key=lambda each: -sum(each.lags.values()))
    return [RecordPosition(*at) for each in by_lag for at in positions[each.group.id].items()]


def led(topics: Sequence[TopicMetadata]) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, each.index)
        for topic in topics
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    ]
