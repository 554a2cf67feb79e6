"""The leader epochs of partitions, as their leaders know them (KIP-320)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.leader_calls import call_broker, from_leaders
from penstock.client.listing import EARLIEST, NOT_A_REPLICA, by_topic
from penstock.client.offsets import offsets_of_leader
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

MOST_EPOCHS: Final = 32


class LeaderEpochStart(NamedTuple):
    """The first offset that an epoch's leader wrote."""

    epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class LeaderLog:
    """The log of a partition's leader: the leader's epoch, the log end offset, and the offset at
    which each epoch starts, oldest first.
    """

    epoch: int
    end: Offset
    starts: list[LeaderEpochStart]

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote an offset; -1: unknown."""
        found = [each.epoch for each in self.starts if each.start <= offset]
        return found[-1] if found and offset < self.end else -1


async def leader_logs(
    client: Client, since: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
) -> dict[TopicPartition, LeaderLog]:
    """The epochs of each partition, back to the one that wrote the offset, or the last
    `MOST_EPOCHS`. Partitions whose leader does not know them are left out.
    """
    return await from_leaders(client, since, _led_logs, timeout_ms=timeout_ms)


async def _led_logs(
    client: Client, leader: BrokerId, since: Mapping[TopicPartition, int]
) -> dict[TopicPartition, LeaderLog]:
    present = {}
    for each in since:
        present[each] = (await client.topic(each.topic)).partitions[each.partition].leader_epoch
    asked = {each: int(epoch) for each, epoch in present.items() if epoch >= 0}
    logs = {}
    for partition, (epoch, end) in (await _epoch_ends(client, leader, present, asked)).items():
        if end >= 0:
            logs[partition] = LeaderLog(present[partition], Offset(end), [])
            asked[partition] = epoch
    asked = {each: asked[each] for each in logs}
    for _ in range(MOST_EPOCHS):
        if not asked:
            break
        # An epoch starts where the one before it ends.
        before = {each: epoch - 1 for each, epoch in asked.items()}
        for partition, (epoch, end) in (await _epoch_ends(client, leader, present, before)).items():
            starts, start = logs[partition].starts, max(0, end)
            if not starts or start < starts[0].start:
                starts.insert(0, LeaderEpochStart(asked[partition], start))
                if epoch >= 0 and start > since[partition]:
                    asked[partition] = epoch
                    continue
            del asked[partition]
    await _without_deleted(client, leader, logs)
    return logs


async def _without_deleted(
    client: Client, leader: BrokerId, logs: Mapping[TopicPartition, LeaderLog]
) -> None:
    """Remove epochs of deleted records. An epoch older than the log seems to end where the log
    starts, but it is unknown which epoch wrote what was deleted.
    """
    if not logs:
        return
    found = await offsets_of_leader(client, leader, dict.fromkeys(logs, EARLIEST))
    for partition, known in logs.items():
        begin, ends = found[partition].offset, [each.start for each in known.starts[1:]]
        known.starts[:] = [
            each._replace(start=max(each.start, begin))
            for each, end in zip(known.starts, [*ends, known.end + 1], strict=True)
            if end > begin
        ]


async def _epoch_ends(
    client: Client,
    leader: BrokerId,
    present: Mapping[TopicPartition, int],
    asked: Mapping[TopicPartition, int],
) -> dict[TopicPartition, tuple[int, int]]:
    """The largest known epoch up to the requested one, and its end; -1: unknown."""
    if not asked:
        return {}
    request = OffsetForLeaderEpochRequest(
        replica_id=NOT_A_REPLICA,
        topics=[
            OffsetForLeaderTopic(
                name,
                [
                    OffsetForLeaderPartition(
                        each.partition,
                        current_leader_epoch=present[each],
                        leader_epoch=asked[each],
                    )
                    for each in partitions
                ],
            )
            for name, partitions in by_topic(asked).items()
        ],
    )
    response = await call_broker(client, leader, request, OffsetForLeaderEpochResponse)
    found = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.topic, each.partition)
            check(each.error_code, f"epochs of {partition}")
            found[partition] = each.leader_epoch, each.end_offset
    return found
