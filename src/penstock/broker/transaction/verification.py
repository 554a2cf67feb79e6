"""Transaction verifications in flight to a coordinator on another broker (KIP-890).

A response holds for the moment at which the coordinator gave it. A marker that arrives before the
write ends that transaction; the write would then open a transaction that never ends.
"""

from collections import OrderedDict
from typing import TypeAlias

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.replication.partition import Partition
from penstock.types import TopicPartition

MOST_FIRST = 1000
"""The most producers and partitions whose first batches are remembered, the newest."""

First: TypeAlias = tuple[tuple[int, int], int]
"""The tenure of its partition and the epoch of its producer; the lowest sequence sent in these."""


class Verification:
    """One producer's write to one partition, while its verification is in flight."""

    def __init__(self, partition: Partition, producer_id: int) -> None:
        self.partition, self.producer_id = partition, producer_id
        self._tenure = partition.tenure
        self.is_void = False

    def holds(self) -> bool:
        """Whether the response is still valid: no marker has arrived, here or at another leader."""
        return not self.is_void and self.partition.is_in_tenure(self._tenure)


class PendingVerifications:
    """All of this broker's verifications. Belongs to the event loop.

    It remembers the first batch of a producer in a partition: if that is refused, its producer
    sends it again, and batches sent behind it must not be appended before it.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[TopicPartition, int], list[Verification]] = {}
        self._first: OrderedDict[tuple[TopicPartition, int], First] = OrderedDict()
        """By partition and producer."""

    def is_next(self, partition: Partition, producer: ProducerIdAndEpoch, sequence: int) -> bool:
        """Whether the producer has sent no earlier batch, to a partition without its state.

        The batch is remembered until the transaction ends: later checks may refuse it, too.
        """
        key, since = (partition.topic_partition, producer.id), (partition.tenure, producer.epoch)
        known, lowest = self._first.get(key, (since, sequence))
        if known != since or sequence < lowest:
            lowest = sequence
        self._first[key] = since, lowest
        if len(self._first) > MOST_FIRST:
            self._first.popitem(last=False)
        return sequence == lowest

    def begin(self, partition: Partition, producer_id: int) -> Verification:
        verification = Verification(partition, producer_id)
        key = (partition.topic_partition, producer_id)
        self._pending.setdefault(key, []).append(verification)
        return verification

    def close(self, verification: Verification) -> None:
        """Remove the verification: the write is done, or will not be made."""
        key = (verification.partition.topic_partition, verification.producer_id)
        others = self._pending.get(key)
        if others is not None and verification in others:
            others.remove(verification)
            if not others:
                del self._pending[key]

    def marker_appended(self, topic_partition: TopicPartition, producer_id: int) -> None:
        """Void the verifications: the producer's transaction has ended in this partition."""
        self._first.pop((topic_partition, producer_id), None)
        for verification in self._pending.pop((topic_partition, producer_id), ()):
            verification.is_void = True

    def __len__(self) -> int:
        return sum(map(len, self._pending.values()))
