"""Describes the log directories of brokers, and moves replicas between them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import ToBroker
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition, indexes_by_topic
from penstock.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


class LogDirReplica(NamedTuple):
    """A partition's replica on one broker."""

    partition: TopicPartition
    broker: BrokerId


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """Size and lag of a replica; a future one is being copied from another directory."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory; sizes are -1 if not reported by the broker. An offline one has an error."""

    path: str
    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int
    usable_bytes: int


async def describe_log_dirs(
    client: Client, broker: BrokerId, partitions: Iterable[TopicPartition] | None = None
) -> list[LogDirDescription]:
    """The log directories of a broker, with these replicas; None means all."""
    topics = None
    if partitions is not None:
        topics = [
            DescribableLogDirTopic(topic=name, partitions=indexes)
            for name, indexes in indexes_by_topic(partitions).items()
        ]

    def raise_refusal(response: DescribeLogDirsResponse) -> None:
        check(response.error_code, f"log directories of broker {broker}")

    response = await client.call(
        DescribeLogDirsRequest(topics=topics),
        DescribeLogDirsResponse,
        to=ToBroker(broker),
        check=raise_refusal,
    )
    return [
        LogDirDescription(
            result.log_dir,
            BrokerRefused(result.error_code, result.log_dir) if result.error_code else None,
            {
                TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                    each.partition_size, each.offset_lag, each.is_future_key
                )
                for topic in result.topics
                for each in topic.partitions
            },
            result.total_bytes,
            result.usable_bytes,
        )
        for result in response.results
    ]


async def alter_replica_log_dirs(
    client: Client, moves: Mapping[LogDirReplica, str]
) -> dict[LogDirReplica, KafkaError | None]:
    """Move replicas to other log directories of their brokers; returns the error of each, if any.

    A broker that does not have the replica yet answers REPLICA_NOT_AVAILABLE, and creates it in
    that directory later.
    """
    by_broker: dict[BrokerId, dict[str, list[TopicPartition]]] = {}
    for replica, path in moves.items():
        directories = by_broker.setdefault(replica.broker, {})
        directories.setdefault(path, []).append(replica.partition)
    outcomes: dict[LogDirReplica, KafkaError | None] = {}
    for broker, directories in by_broker.items():
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=name, partitions=indexes)
                        for name, indexes in indexes_by_topic(partitions).items()
                    ],
                )
                for path, partitions in directories.items()
            ]
        )
        response = await client.call(request, AlterReplicaLogDirsResponse, to=ToBroker(broker))
        for topic in response.results:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic_name, each.partition_index)
                outcomes[LogDirReplica(partition, broker)] = (
                    None
                    if each.error_code == ErrorCode.NONE
                    else BrokerRefused(each.error_code, f"{partition} on broker {broker}")
                )
    return outcomes
