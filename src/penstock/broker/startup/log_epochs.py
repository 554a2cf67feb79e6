"""Leader epochs after a restore: those in the store may be older than the logs.

A leader of an older epoch than its last batches' would append what looks like damage: the next
recovery would truncate there. Followers would truncate what they have of later epochs, copy it, and
truncate it again. Workers of one machine refuse such a start instead.
"""

import logging

from msgspec.structs import replace

from penstock.log.store import LogStore
from penstock.metadata import paths
from penstock.metadata.errors import BadVersion
from penstock.metadata.image import ClusterImage
from penstock.metadata.records import PartitionState, decode_or_skip, encode
from penstock.metadata.store import MetadataStore
from penstock.types import BrokerId, TopicPartition

logger = logging.getLogger(__name__)

SKIPPED_EPOCHS = 1_000
"""Epochs left out where there are several replicas: the others may have records of later epochs
than this broker, and no epoch may have two leaders.
"""
MOST_LOST_EPOCHS = 1 << 20
"""More elections were not lost: the epoch of a batch has changed on disk, which no CRC tells.
Followers truncate such a batch.
"""


async def raise_epochs(
    store: MetadataStore, image: ClusterImage, broker: BrokerId, logs: LogStore
) -> None:
    """Raise the epochs of partitions that this broker has. It is not registered yet."""
    for topic_partition, log in logs.logs.items():
        topic, known = image.topics.get(topic_partition.topic), image.partition(topic_partition)
        latest = log.epochs.latest
        if (
            topic is not None
            and known is not None
            and latest is not None
            and known.partition_epoch >= 0
            and known.leader_epoch < latest
            and broker in known.replicas
            and logs.topic_ids.get(topic_partition) == topic.id
        ):
            if known.replicas == (broker,):
                await _raise(store, topic_partition, latest)
            elif latest - known.leader_epoch <= MOST_LOST_EPOCHS:
                await _raise(store, topic_partition, latest, skipped=SKIPPED_EPOCHS)


async def _raise(
    store: MetadataStore, topic_partition: TopicPartition, latest: int, *, skipped: int = 0
) -> None:
    path = paths.partition_state(topic_partition)
    epoch = latest + skipped
    while True:
        node = (await store.get_many((path,))).get(path)
        state = None if node is None else decode_or_skip(PartitionState, node)
        if node is None or state is None or state.leader_epoch >= latest:
            return
        try:
            await store.set(path, encode(replace(state, leader_epoch=epoch)), node.version)
        except BadVersion:
            continue  # the controller was faster
        logger.warning(
            "the metadata is older than %s: its leader epoch is raised from %d to %d",
            topic_partition,
            state.leader_epoch,
            epoch,
        )
        return
