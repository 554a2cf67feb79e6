"""The share coordinator: routes each operation to the shard of its share-partition."""

from collections.abc import Callable
from typing import TypeVar

from penstock.coordinator.keys import partition_for
from penstock.coordinator.result import EmptyReply, Now, PendingReply
from penstock.coordinator.runtime import CoordinatorRuntime
from penstock.coordinator.share.records import ShareRecord
from penstock.coordinator.share.shard import ShareResult, ShareShard, StateUpdate
from penstock.coordinator.share.state import ShareGroupOffset, SharePartitionKey

T = TypeVar("T")

TOPIC = "__share_group_state"


class ShareCoordinator:
    """Every operation returns a pending reply, which has its value at once or gets it later.

    `partition_count` is that of `__share_group_state`, which never changes while a broker runs.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[ShareShard, ShareRecord],
        partition_count: Callable[[], int],
    ) -> None:
        self.runtime, self.partition_count = runtime, partition_count

    def partition_of(self, key: str) -> int:
        """The partition of a share-partition, spelled as FindCoordinator does."""
        return partition_for(key, self.partition_count())

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int
    ) -> PendingReply[EmptyReply]:
        return self._run(
            key,
            lambda shard, now, pending: shard.initialize(
                now, pending, key, state_epoch, start_offset
            ),
        )

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PendingReply[ShareGroupOffset]:
        return self._run(
            key, lambda shard, now, pending: shard.read(now, pending, key, leader_epoch)
        )

    def write(self, key: SharePartitionKey, update: StateUpdate) -> PendingReply[EmptyReply]:
        return self._run(key, lambda shard, now, pending: shard.write(now, pending, key, update))

    def delete(self, key: SharePartitionKey) -> PendingReply[EmptyReply]:
        return self._run(key, lambda shard, _, pending: shard.delete(pending, key))

    def summary(self, key: SharePartitionKey) -> PendingReply[ShareGroupOffset | EmptyReply]:
        return self._run(key, lambda shard, _, pending: shard.summary(pending, key))

    def _run(
        self,
        key: SharePartitionKey,
        operation: Callable[[ShareShard, Now, PendingReply[T]], ShareResult],
    ) -> PendingReply[T]:
        return self.runtime.run(self.partition_of(str(key)), operation)
