"""OffsetFetch by name does not return offsets of a deleted topic of the same name."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.broker.handlers.offset_fetch import response_topic
from penstock.coordinator.group.offsets import CommittedOffset
from penstock.metadata.image import ClusterImage, ImageDelta, Topic
from penstock.types import NO_UUID, TopicPartition, Uuid
from penstock.wire.messages.offset_fetch import OffsetFetchRequestTopics

OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("committed_to", "offset"), [(OLD, -1), (NEW, 5), (NO_UUID, 5)])
def test_a_topic_created_again_has_no_offsets_of_the_old_one(
    version: int, committed_to: Uuid, offset: int
) -> None:
    """Offsets written by older brokers have no topic id."""
    image = ClusterImage().apply(ImageDelta(topics={"t": Topic("t", NEW, {})}))
    ctx: Any = SimpleNamespace(
        version=version, services=SimpleNamespace(cluster=SimpleNamespace(image=image))
    )
    asked = OffsetFetchRequestTopics("t", NO_UUID, [0])
    if version >= 10:
        asked = OffsetFetchRequestTopics("", NEW, [0])
    known = {TopicPartition("t", 0): CommittedOffset(5, topic_id=committed_to)}
    (part,) = response_topic(asked, known, ctx).partitions
    assert part.committed_offset == offset
