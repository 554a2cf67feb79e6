"""Shortens `__share_group_state`, which is not compacted: whole states replace earlier records."""

import logging
from collections.abc import Callable, Container

from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.share.shard import ShareShard
from penstock.errors import KafkaError
from penstock.types import Uuid

logger = logging.getLogger(__name__)

NEEDLESS = 2
"""A log is rewritten if it has more records than this for each share-partition."""


class StatePruning:
    """Belongs to the event loop. `topics` are the ids of the existing topics."""

    def __init__(
        self, coordinator: ShareCoordinator, topics: Callable[[], Container[Uuid]]
    ) -> None:
        self._coordinator, self._topics = coordinator, topics
        self._missing: set[Uuid] = set()

    def prune(self) -> None:
        """Rewrite logs that consist mostly of superseded records.

        The state of a topic is deleted when the topic is missing for the second time: a broker may
        learn of topics later than of their state.
        """
        runtime, topics = self._coordinator.runtime, self._topics()
        shards = runtime.loaded()
        named = {key.topic_id for shard in shards.values() for key in shard.offsets}
        missing = {each for each in named if each not in topics}
        gone, self._missing = missing & self._missing, missing
        for partition, shard in shards.items():
            if is_long(shard) or any(key.topic_id in gone for key in shard.offsets):
                self._rewrite(partition, shard, gone)

    def _rewrite(self, partition: int, shard: ShareShard, gone: set[Uuid]) -> None:
        try:
            self._coordinator.runtime.rewrite(
                partition, lambda shard, now, pending: shard.everything(now, pending, gone)
            )
        except KafkaError as error:
            logger.warning(
                "%s-%d is not pruned: %s", self._coordinator.runtime.name, partition, error
            )
        else:
            shard.records = 0


def is_long(shard: ShareShard) -> bool:
    return shard.records > NEEDLESS * len(shard.offsets)
