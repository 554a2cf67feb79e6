"""The requests that most cases are made of."""

from typing import Any

from differential.case import Eventually
from differential.symbols import topic_id
from penstock.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from penstock.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def topic(name: str = "~t", partitions: int = 1, **configs: str) -> CreatableTopic:
    """A topic with settings, given with underscores for dots."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


ONE = (topic(),)
THREE = (topic(partitions=3),)


def produce(
    *batches: bytes | None,
    to: str = "~t",
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 5000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Records for one partition: all batches together, or null."""
    records = b"".join(b for b in batches if b is not None) if batches != (None,) else None
    return produce_to(
        sent(to, PartitionProduceData(index=partition, records=records)),
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
    )


def produce_to(
    *topics: TopicProduceData,
    acks: int = -1,
    timeout_ms: int = 5000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=list(topics),
    )


def sent(to: str, *partitions: PartitionProduceData) -> TopicProduceData:
    return TopicProduceData(name=to, topic_id=topic_id(to), partition_data=list(partitions))


def fetch(
    offset: int = 0,
    *,
    of: str = "~t",
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    log_start_offset: int = -1,
    **request: Any,
) -> FetchRequest:
    """Fetch one partition from `offset`, without waiting."""
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        log_start_offset=log_start_offset,
    )
    return fetch_of(wanted_of(of, wanted), **request)


def fetch_of(
    *topics: FetchTopic,
    forgotten: tuple[ForgottenTopic, ...] = (),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 24,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    replica_id: int = -1,
) -> FetchRequest:
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=list(topics),
        forgotten_topics_data=list(forgotten),
    )


def wanted_of(of: str, *partitions: FetchPartition) -> FetchTopic:
    return FetchTopic(topic=of, topic_id=topic_id(of), partitions=list(partitions))


def seen(name: str, partitions: int) -> Eventually:
    """Wait until the broker knows this many partitions of the topic."""
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
    )
    return Eventually(asked, lambda answer: len(answer.topics[0].partitions) == partitions)


def gone(name: str) -> Eventually:
    return seen(name, 0)


def at(partition: int, offset: int = 0, max_bytes: int = 1 << 20) -> FetchPartition:
    return FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
