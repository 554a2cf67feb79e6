"""Transaction verifications in flight to a coordinator on another broker (KIP-890).

A response holds for the moment at which the coordinator gave it. A marker that arrives before the
write ends that transaction; the write would then open a transaction that never ends.
"""

from collections import OrderedDict

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.replication.partition import Partition
from penstock.types import TopicPartition

MOST_REFUSED = 1000
"""The most producers and partitions whose refused batches are remembered, the newest."""


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

    It remembers the first batch that was refused in a partition: its producer sends it again, and
    batches sent behind it must not be appended before it.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[TopicPartition, int], list[Verification]] = {}
        self._refused: OrderedDict[tuple[TopicPartition, int], tuple[int, int]] = OrderedDict()
        """Epoch and lowest refused sequence, by partition and producer."""

    def refused(
        self, topic_partition: TopicPartition, producer: ProducerIdAndEpoch, sequence: int
    ) -> None:
        """Note that a producer's batch was refused."""
        key = (topic_partition, producer.id)
        epoch, lowest = self._refused.get(key, (producer.epoch, sequence))
        if epoch != producer.epoch or sequence < lowest:
            lowest = sequence
        self._refused[key] = (producer.epoch, lowest)
        if len(self._refused) > MOST_REFUSED:
            self._refused.popitem(last=False)

    def is_next(
        self, topic_partition: TopicPartition, producer: ProducerIdAndEpoch, sequence: int
    ) -> bool:
        """Whether no batch before this one was refused. If so, forget refused ones."""
        key = (topic_partition, producer.id)
        epoch, lowest = self._refused.get(key, (producer.epoch, sequence))
        if epoch == producer.epoch and sequence > lowest:
            return False
        self._refused.pop(key, None)
        return True

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
        self._refused.pop((topic_partition, producer_id), None)
        for verification in self._pending.pop((topic_partition, producer_id), ()):
            verification.is_void = True

    def __len__(self) -> int:
        return sum(map(len, self._pending.values()))
