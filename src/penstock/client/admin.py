"""Describes the cluster; lists, creates, deletes and extends topics."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.metadata import ClusterMetadata, TopicMetadata
from penstock.client.route import CONTROLLER
from penstock.types import BrokerId, Uuid
from penstock.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

BROKER_DEFAULT = -1
"""A number of partitions or replicas that means the broker's default (KIP-464)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; `assignments` (replicas by partition) replaces both numbers."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: Sequence[Sequence[BrokerId]] = ()
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as created; numbers are -1 if the broker does not return them."""

    name: str
    id: Uuid
    partitions: int
    replication_factor: int


async def describe_cluster(client: Client) -> ClusterMetadata:
    return await client.retrying(client.cluster)


async def list_topics(client: Client) -> list[TopicMetadata]:
    """Every visible topic, sorted by name."""
    found = await client.retrying(lambda: client.topics(None))
    return sorted(found, key=lambda topic: topic.name)


async def describe_topics(client: Client, names: Iterable[str]) -> list[TopicMetadata]:
    """These topics, in the given order; raises for the first that is missing."""
    wanted = list(names)
    found = await client.retrying(lambda: client.topics(wanted))
    by_name = {topic.name: topic for topic in found}
    return [by_name[name] for name in wanted]


async def create_topic(
    client: Client, topic: NewTopic, *, validate_only: bool = False
) -> CreatedTopic:
    def raise_refusal(response: CreateTopicsResponse) -> None:
        for result in response.topics:
            check(result.error_code, f"topic {result.name}", result.error_message)

    request = CreateTopicsRequest(
        topics=[_creatable(topic)],
        timeout_ms=client.request_timeout_ms,
        validate_only=validate_only,
    )
    response = await client.call(request, CreateTopicsResponse, to=CONTROLLER, check=raise_refusal)
    (made,) = response.topics
    return CreatedTopic(made.name, made.topic_id, made.num_partitions, made.replication_factor)


def _creatable(topic: NewTopic) -> CreatableTopic:
    assigned = bool(topic.assignments)
    return CreatableTopic(
        name=topic.name,
        num_partitions=BROKER_DEFAULT if assigned else topic.partitions,
        replication_factor=BROKER_DEFAULT if assigned else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in enumerate(topic.assignments)
        ],
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )


async def delete_topic(client: Client, name: str) -> None:
    def raise_refusal(response: DeleteTopicsResponse) -> None:
        for result in response.responses:
            check(result.error_code, f"topic {result.name}", result.error_message)

    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name)],
        topic_names=[name],  # the field before version 6
        timeout_ms=client.request_timeout_ms,
    )
    await client.call(request, DeleteTopicsResponse, to=CONTROLLER, check=raise_refusal)


async def create_partitions(
    client: Client,
    name: str,
    total: int,
    *,
    assignments: Sequence[Sequence[BrokerId]] = (),
    validate_only: bool = False,
) -> None:
    """Grow the topic to `total` partitions; `assignments` places the new ones."""

    def raise_refusal(response: CreatePartitionsResponse) -> None:
        for result in response.results:
            check(result.error_code, f"topic {result.name}", result.error_message)

    placed = [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignments]
    topic = CreatePartitionsTopic(name=name, count=total, assignments=placed or None)
    request = CreatePartitionsRequest(
        topics=[topic], timeout_ms=client.request_timeout_ms, validate_only=validate_only
    )
    await client.call(request, CreatePartitionsResponse, to=CONTROLLER, check=raise_refusal)
