"""Which batch may begin a partition that has no state of its producer."""

from penstock.broker.transaction.verification import MOST_FIRST, PendingVerifications
from penstock.config.topic import TopicConfig
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.replication.environment import ALONE
from penstock.replication.partition import Partition
from penstock.testing.logs import PARTITION, TOPIC_ID, LogRig
from penstock.types import BrokerId


class Producer:
    """A producer that writes to one partition."""

    def __init__(self) -> None:
        log = LogRig(TopicConfig()).log
        self.partition = Partition(BrokerId(1), PARTITION, TOPIC_ID, log, ALONE)
        self.pending, self.epoch = PendingVerifications(), 0

    def may_send(self, *sequences: int, producer_id: int = 5) -> list[bool]:
        producer = ProducerIdAndEpoch(producer_id, self.epoch)
        return [self.pending.is_next(self.partition, producer, each) for each in sequences]


def test_the_first_batch_and_those_before_it_may_begin() -> None:
    assert Producer().may_send(7, 8, 7, 6, 7) == [True, False, True, True, False]


def test_a_new_epoch_begins_anywhere() -> None:
    producer = Producer()
    assert producer.may_send(7, 8) == [True, False]
    producer.epoch = 1
    assert producer.may_send(8) == [True]


def test_the_end_of_the_transaction_forgets_its_batches() -> None:
    producer = Producer()
    producer.may_send(7)
    producer.pending.marker_appended(PARTITION, 5)
    assert producer.may_send(8) == [True]


def test_batches_from_before_another_broker_led_do_not_count() -> None:
    """The transaction may have ended there."""
    producer = Producer()
    producer.may_send(7)
    producer.partition.tenure += 1
    assert producer.may_send(8) == [True]


def test_so_many_producers_are_remembered() -> None:
    producer = Producer()
    for producer_id in range(MOST_FIRST + 1):
        producer.may_send(7, producer_id=producer_id)
    assert producer.may_send(8, producer_id=1) == [False]
    assert producer.may_send(8, producer_id=0) == [True]
