"""The end of a partition's log, from which lag is counted; another broker may lead it."""

from collections.abc import Callable

from penstock.broker.peers.connection import PeerConnection
from penstock.errors import KafkaError
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import NO_LEADER
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST, CONSUMER = -1, -1
TIMEOUT_MS = 3_000


async def log_end(
    topic_partition: TopicPartition,
    partitions: Partitions,
    image: ClusterImage,
    connection_to: Callable[[BrokerId], PeerConnection],
) -> int | None:
    """The high watermark; None if the leader cannot be reached."""
    here = partitions.find(*topic_partition)
    if here is not None and here.leads:
        return here.log.high_watermark
    known = image.partition(topic_partition)
    if known is None or known.leader == NO_LEADER:
        return None
    topic, index = topic_partition
    asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
    request = ListOffsetsRequest(
        replica_id=CONSUMER, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    try:
        response = await connection_to(known.leader).call(
            request, ListOffsetsResponse, timeout_ms=TIMEOUT_MS
        )
    except KafkaError:
        return None
    for found in response.topics:
        for each in found.partitions:
            return None if each.error_code else each.offset
    return None
