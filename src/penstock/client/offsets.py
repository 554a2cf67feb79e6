"""Looks up offsets of partitions, and deletes records up to an offset."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.client.listing import (
    EARLIEST,
    LATEST,
    NOT_A_REPLICA,
    IsolationLevel,
    ListedOffset,
    by_topic,
    list_offsets_request,
    listed_offsets,
)
from penstock.client.metadata import NO_LEADER
from penstock.client.route import ToBroker
from penstock.types import BrokerId, Offset, TopicPartition
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import ListOffsetsResponse
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

MOST_EPOCHS: Final = 32


async def list_offsets(
    client: Client,
    wanted: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[TopicPartition, ListedOffset]:
    """Each partition's first offset at or after a timestamp in ms, or at one such as `LATEST`."""

    async def attempt() -> dict[TopicPartition, ListedOffset]:
        found: dict[TopicPartition, ListedOffset] = {}
        for leader, partitions in (await client.by_leader(wanted)).items():
            requested = {each: wanted[each] for each in partitions}
            found |= await _listed(client, leader, requested, isolation)
        return found

    return await client.retrying(attempt)


async def known_ends(
    client: Client, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, Offset]:
    """The log ends of the partitions that exist and have a leader; the others are left out.

    So a group can be inspected while a broker is down.
    """
    if not partitions:
        return {}
    led = {
        TopicPartition(topic.name, each.index)
        for topic in await client.existing_topics({each.topic for each in partitions})
        for each in topic.partitions.values()
        if each.leader != NO_LEADER
    }
    wanted = dict.fromkeys((each for each in partitions if each in led), LATEST)
    return {tp: each.offset for tp, each in (await list_offsets(client, wanted)).items()}


class EpochStart(NamedTuple):
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
    starts: list[EpochStart]

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

    async def attempt() -> dict[TopicPartition, LeaderLog]:
        found: dict[TopicPartition, LeaderLog] = {}
        for leader, led in (await client.by_leader(since)).items():
            found |= await _led_logs(client, leader, {each: since[each] for each in led})
        return found

    return await client.retrying(attempt, timeout_ms=timeout_ms)


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
                starts.insert(0, EpochStart(asked[partition], start))
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
    begins = dict.fromkeys(logs, EARLIEST)
    found = await _listed(client, leader, begins, IsolationLevel.READ_UNCOMMITTED)
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
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, OffsetForLeaderEpochResponse, timeout_ms=client.request_timeout_ms
    )
    found = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.topic, each.partition)
            check(each.error_code, f"epochs of {partition}")
            found[partition] = each.leader_epoch, each.end_offset
    return found


async def _listed(
    client: Client,
    leader: BrokerId,
    requested: Mapping[TopicPartition, int],
    isolation: IsolationLevel,
) -> dict[TopicPartition, ListedOffset]:
    request = list_offsets_request(requested, isolation, client.request_timeout_ms)
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, ListOffsetsResponse, timeout_ms=client.request_timeout_ms
    )
    return listed_offsets(response)


async def delete_records(
    client: Client, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    """Delete the records before an offset (-1: all); returns the new log start offsets."""

    async def attempt() -> dict[TopicPartition, Offset]:
        starts: dict[TopicPartition, Offset] = {}
        for leader, partitions in (await client.by_leader(before)).items():
            requested = {each: before[each] for each in partitions}
            starts |= await _deleted(client, leader, requested)
        return starts

    return await client.retrying(attempt)


async def _deleted(
    client: Client, leader: BrokerId, before: Mapping[TopicPartition, Offset]
) -> dict[TopicPartition, Offset]:
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=each.partition, offset=before[each])
                    for each in partitions
                ],
            )
            for topic, partitions in by_topic(before).items()
        ],
        timeout_ms=client.request_timeout_ms,
    )
    connection = await client.connection(ToBroker(leader))
    response = await connection.call(
        request, DeleteRecordsResponse, timeout_ms=client.request_timeout_ms
    )
    starts = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            check(each.error_code, f"records of {partition}")
            starts[partition] = Offset(each.low_watermark)
    return starts
