"""The position of a consumer before it has read anything."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, TopicPartition

from penstock.sdk.consumer import Consumer


class NewGroup:
    """A client whose group has neither a position nor a committed offset, for a log [0, 100)."""

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition, OFFSET_INVALID) for each in partitions]

    def committed(self, partitions: list[TopicPartition], _: float) -> list[TopicPartition]:
        return self.position(partitions)

    def get_watermark_offsets(self, _: TopicPartition, __: float) -> tuple[int, int]:
        return 0, 100

    def seek(self, at: TopicPartition) -> None:
        self.sought = at.offset

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("settings", "position", "sought"),
    [
        ({}, 100, 90),
        ({"auto.offset.reset": "latest"}, 100, 90),
        ({"auto.offset.reset": "earliest"}, 0, 0),
        ({"auto.offset.reset": "smallest"}, 0, 0),
    ],
)
def test_a_new_groups_position_follows_auto_offset_reset(
    settings: dict[str, str], position: int, sought: int
) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0, **settings}
    with Consumer[bytes, bytes](config) as consumer:
        consumer.client.close()
        client: Any = NewGroup()
        consumer.client = client
        assert consumer.position("t", 0) == position
        consumer.seek_by(-10, [("t", 0)])
        assert client.sought == sought
