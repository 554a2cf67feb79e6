"""Producers of whom another broker is being asked whether they are in a transaction.

The answer tells of the time when it was given. A marker that comes before the write ends that
transaction: what is written then would open one that nobody ends (KIP-890).
"""

from penstock.replication.partition import Partition
from penstock.types import TopicPartition


class Question:
    """About one producer in one partition."""

    def __init__(self, partition: Partition, producer_id: int) -> None:
        self.partition, self.producer_id = partition, producer_id
        self._tenure = partition.tenure
        self.is_void = False

    def holds(self) -> bool:
        """Whether the answer still means something: no marker has come, here or elsewhere."""
        return not self.is_void and self.partition.is_in_tenure(self._tenure)


class OpenQuestions:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._open: dict[tuple[TopicPartition, int], list[Question]] = {}

    def begin(self, partition: Partition, producer_id: int) -> Question:
        question = Question(partition, producer_id)
        self._open.setdefault((partition.topic_partition, producer_id), []).append(question)
        return question

    def close(self, question: Question) -> None:
        """The write is done, or will not be."""
        key = (question.partition.topic_partition, question.producer_id)
        others = self._open.get(key)
        if others is not None and question in others:
            others.remove(question)
            if not others:
                del self._open[key]

    def ended(self, where: TopicPartition, producer_id: int) -> None:
        """A marker of the producer is in the log."""
        for question in self._open.pop((where, producer_id), ()):
            question.is_void = True

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))
