"""Stray logs: logs that the controller's full set does not assign to this broker."""

import pytest

from penstock.broker.replicas.strays import strays, unknown_topics
from penstock.metadata.image import ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid

WHERE = TopicPartition("t", 0)
ID, ANOTHER_ID = Uuid(bytes(15) + b"1"), Uuid(bytes(15) + b"2")
HERE, THERE = BrokerId(1), BrokerId(2)


def image_of(
    *replicas: BrokerId, topic_id: Uuid = ID, partition: int = 0, epoch: int = 3
) -> ClusterImage:
    state = PartitionRegistration(replicas, partition_epoch=epoch)
    topic = Topic("t", topic_id, {partition: state})
    return ClusterImage().apply(ImageDelta(topics={"t": topic}))


@pytest.mark.parametrize(
    ("image", "held", "why"),
    [
        (image_of(THERE, HERE), ID, None),
        (image_of(THERE), ID, "assigned to other brokers"),
        (image_of(THERE, epoch=-1), ID, None),  # its state is not written yet
        (image_of(HERE, topic_id=ANOTHER_ID), ID, "name was reused"),
        (image_of(HERE), NO_UUID, None),
        (image_of(HERE, topic_id=NO_UUID), ID, None),
        (image_of(HERE, partition=1), ID, None),  # the partition is not in the set yet
        (ClusterImage(), ID, "belongs to a deleted topic"),
    ],
)
def test_an_unassigned_log_is_a_stray(image: ClusterImage, held: Uuid, why: str | None) -> None:
    found = strays({WHERE: held}, image, HERE, ())
    assert list(found) == ([] if why is None else [WHERE])
    assert why is None or why in found[WHERE]


def test_a_log_stays_while_the_store_has_its_topic() -> None:
    """The topic was not deleted: its node may be malformed, or the topic is new."""
    held = {WHERE: ID, TopicPartition("known", 0): ID}
    image = ClusterImage().apply(
        ImageDelta(topics={"known": Topic("known", ID, {0: PartitionRegistration((HERE,))})})
    )
    assert unknown_topics(held, image) == {"t"}
    assert strays(held, image, HERE, {"t"}) == {}
