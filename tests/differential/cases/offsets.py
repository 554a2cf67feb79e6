"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: offsets by time and epoch, and deletion."""

from differential.batches import HOUR_MS, NOW_MS, batch
from differential.case import Case, Step, case
from differential.requests import ONE, THREE, fetch, produce, topic
from penstock.record.compression import Codec
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

THEN = NOW_MS - HOUR_MS
TIMES = tuple(THEN + 1000 * step for step in (0, 5, 2, 8))
FILLED = tuple(produce(batch(2, timestamp=time)) for time in TIMES)
"""Eight records in four batches, the third older than the second."""


def _list(
    timestamp: int,
    *,
    partition: int = 0,
    of: str = "~t",
    epoch: int = -1,
    isolation_level: int = 0,
    replica_id: int = -1,
) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch
    )
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=of, partitions=[wanted])],
        timeout_ms=5000,
    )


def _delete(offset: int, partition: int = 0, of: str = "~t") -> DeleteRecordsRequest:
    cut = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=of, partitions=[cut])], timeout_ms=5000
    )


def _filled(name: str, *requests: Step, since: int = 0, until: int = 32767) -> Case:
    return case(name, *FILLED, *requests, topics=ONE, since=since, until=until)


LIST_OFFSETS = [
    _filled("latest", _list(-1)),
    _filled("earliest", _list(-2)),
    _filled("max timestamp", _list(-3), since=7),
    _filled("max timestamp, before its version", _list(-3), until=6),
    _filled("earliest local", _list(-4), since=8),
    _filled("earliest local, before its version", _list(-4), until=7),
    _filled("latest tiered", _list(-5), since=9),
    _filled("latest tiered, before its version", _list(-5), until=8),
    _filled("earliest pending upload", _list(-6), since=11),
    _filled("earliest pending upload, before its version", _list(-6), until=10),
    _filled("timestamp -7", _list(-7)),
    _filled("timestamp -100", _list(-100)),
    _filled("time zero", _list(0)),
    _filled("the first time", _list(TIMES[0])),
    _filled("just after the first", _list(TIMES[0] + 1)),
    _filled("a time that comes twice", _list(TIMES[2])),
    _filled("between", _list(TIMES[1] - 1)),
    _filled("the last time", _list(TIMES[3])),
    _filled("after the last", _list(TIMES[3] + 1)),
    _filled("latest committed", _list(-1, isolation_level=1), since=2),
    _filled("isolation level 7", _list(-1, isolation_level=7), since=2),
    _filled("earliest after deletion", _delete(3), _list(-2)),
    _filled("by time after deletion", _delete(3), _list(0)),
    _filled("the current epoch", _list(-1, epoch=0), since=4),
    _filled("an epoch to come", _list(-1, epoch=3), since=4),
    _filled("epoch -2", _list(-1, epoch=-2), since=4),
    _filled("an unknown partition", _list(-1, partition=4)),
    _filled("a negative partition", _list(-1, partition=-1)),
    _filled("a stranger as replica", _list(-1, replica_id=9)),
    _filled("a debugging replica", _list(-1, replica_id=-2)),
    case("an unknown topic", _list(-1, of="~none")),
    case("an empty name", _list(-1, of="")),
    case("nothing", ListOffsetsRequest(replica_id=-1)),
    case("an empty partition, latest", _list(-1), topics=ONE),
    case("an empty partition, max timestamp", _list(-3), topics=ONE, since=7),
    case("an empty partition, by time", _list(0), topics=ONE),
    case("by time in a compressed batch",
         produce(batch(3, codec=Codec.ZSTD, timestamp=THEN)), _list(THEN), topics=ONE),
    case("the same partition twice",
         ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="~t", partitions=[
             ListOffsetsPartition(timestamp=-1), ListOffsetsPartition(timestamp=-2)])]),
         topics=ONE),
    case("several partitions",
         produce(batch(4), partition=1),
         ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="~t", partitions=[
             ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (2, 0, 1)])]),
         topics=THREE),
]  # fmt: skip


def _epoch(
    epoch: int, *, current: int = -1, partition: int = 0, of: str = "~t", replica_id: int = -2
) -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderPartition(
        partition=partition, leader_epoch=epoch, current_leader_epoch=current
    )
    return OffsetForLeaderEpochRequest(
        replica_id=replica_id, topics=[OffsetForLeaderTopic(topic=of, partitions=[wanted])]
    )


LEADER_EPOCHS = [
    _filled("the current one", _epoch(0)),
    _filled("one to come", _epoch(1)),
    _filled("far to come", _epoch(2**31 - 1)),
    _filled("epoch -1", _epoch(-1)),
    _filled("epoch -2", _epoch(-2)),
    _filled("the leader's epoch is right", _epoch(0, current=0)),
    _filled("the leader's epoch is to come", _epoch(0, current=1)),
    _filled("the leader's epoch is -2", _epoch(0, current=-2)),
    _filled("asked by a consumer", _epoch(0, replica_id=-1), since=3),
    _filled("asked by a stranger", _epoch(0, replica_id=7), since=3),
    _filled("an unknown partition", _epoch(0, partition=3)),
    _filled("a negative partition", _epoch(0, partition=-1)),
    case("an unknown topic", _epoch(0, of="~none")),
    case("nothing", OffsetForLeaderEpochRequest()),
    case("an empty partition", _epoch(0), topics=ONE),
    case("an empty partition, one to come", _epoch(5), topics=ONE),
]


def _cut(name: str, *requests: Step) -> Case:
    return case(
        name, *FILLED, *requests, _after, fetch(0), fetch(3), topics=ONE, api=DeleteRecordsRequest
    )


_after = _list(-2)

DELETE_RECORDS = [
    _cut("before an offset", _delete(4)),
    _cut("within a batch", _delete(3)),
    _cut("everything", _delete(-1)),
    _cut("everything, by its offset", _delete(8)),
    _cut("beyond the end", _delete(9)),
    _cut("offset 0", _delete(0)),
    _cut("offset -2", _delete(-2)),
    _cut("twice, the second earlier", _delete(5), _delete(2)),
    _cut("an unknown partition", _delete(1, partition=3)),
    _cut("a negative partition", _delete(1, partition=-1)),
    case("an unknown topic", _delete(1, of="~none")),
    case("an empty name", _delete(1, of="")),
    case("nothing", DeleteRecordsRequest(timeout_ms=5000)),
    case("an empty partition", _delete(-1), topics=ONE),
    case("a compacted topic", _delete(-1), topics=(topic(cleanup_policy="compact"),)),
    case("a topic compacted and deleted", _delete(-1),
         topics=(topic(cleanup_policy="compact,delete"),)),
    case("a topic without a cleanup policy", *FILLED, _delete(3), _after,
         topics=(topic(cleanup_policy=""),), api=DeleteRecordsRequest),
    case("the same partition twice",
         *FILLED,
         DeleteRecordsRequest(timeout_ms=5000, topics=[DeleteRecordsTopic(name="~t", partitions=[
             DeleteRecordsPartition(partition_index=0, offset=1),
             DeleteRecordsPartition(partition_index=0, offset=2)])]), topics=ONE),
]  # fmt: skip

CASES: list[Case] = [*LIST_OFFSETS, *LEADER_EPOCHS, *DELETE_RECORDS]
