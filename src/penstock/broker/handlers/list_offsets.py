"""ListOffsets (key 2, v1-v11): offsets by timestamp, and the special ones: earliest, latest, that
of the largest timestamp, and those of tiered storage (there is only the local tier).

Right after an election the latest offset may not be known yet: OFFSET_NOT_AVAILABLE (KIP-207).
Brokers get the log's end; replica id -2 may read a follower.
Refused: special timestamps before the version that introduced them, partitions named twice.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Generator, Iterator, Mapping
from typing import Any

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import PARTITIONS_A_TURN, by_topic, in_turns, turns
from penstock.broker.time_search import MAX_TIMESTAMP, Found, search
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.replication import read_fencing
from penstock.replication.partition import Partition
from penstock.replication.partition_lookup import partition_here
from penstock.replication.read_fencing import OffsetNotAvailable
from penstock.types import TopicPartition
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, _, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
LOWEST = EARLIEST_PENDING_UPLOAD
SINCE_VERSION = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
DEBUGGING_REPLICA = -2
OFFSET_NOT_AVAILABLE_SINCE = 5


class UnsupportedTimestamp(KafkaError):
    """A special timestamp that this version does not have."""

    code = ErrorCode.UNSUPPORTED_VERSION


class NamedTwice(KafkaError):
    """A partition is in the request more than once."""

    code = ErrorCode.INVALID_REQUEST


def list_offsets(
    request: ListOffsetsRequest, ctx: Context
) -> ListOffsetsResponse | Coroutine[Any, Any, ListOffsetsResponse]:
    if any(is_by_time(each.timestamp) for topic in request.topics for each in topic.partitions):
        return searched(request, ctx)
    return in_turns(answered(request, ctx, {}))


def is_by_time(requested: int) -> bool:
    return requested >= 0 or requested == MAX_TIMESTAMP


async def searched(request: ListOffsetsRequest, ctx: Context) -> ListOffsetsResponse:
    """Search batches on another thread: one batch may hold millions of records."""
    found: dict[TopicPartition, Found] = {}
    for count, (topic, part) in enumerate(named_parts(request), 1):
        if count % PARTITIONS_A_TURN == 0:
            await asyncio.sleep(0)
        topic_partition = TopicPartition(topic, part.partition_index)
        partition = ctx.services.replicas.partitions.find(*topic_partition)
        if partition is not None and topic_partition not in found and is_by_time(part.timestamp):
            found[topic_partition] = await search(
                partition.log, part.timestamp, ctx.services.resources.worker
            )
    return await turns(answered(request, ctx, found))


def named_parts(request: ListOffsetsRequest) -> Iterator[tuple[str, ListOffsetsPartition]]:
    return ((topic.name, part) for topic in request.topics for part in topic.partitions)


def answered(
    request: ListOffsetsRequest, ctx: Context, found: Mapping[TopicPartition, Found]
) -> Generator[None, None, ListOffsetsResponse]:
    named = Counter[TopicPartition]()
    for count, (name, part) in enumerate(named_parts(request), 1):
        named[TopicPartition(name, part.partition_index)] += 1
        if count % PARTITIONS_A_TURN == 0:
            yield
    committed = request.isolation_level == READ_COMMITTED
    is_broker = ctx.peer.listener == ctx.services.listeners.inter_broker_listener

    def answer(topic: str, part: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        index = part.partition_index
        try:
            if request.isolation_level not in {READ_UNCOMMITTED, READ_COMMITTED}:
                raise InvalidRequest(f"isolation level {request.isolation_level}")
            if named[TopicPartition(topic, index)] > 1:
                raise NamedTwice(f"{topic}-{index} is named twice")
            if ctx.version < SINCE_VERSION.get(part.timestamp, 0) or part.timestamp < LOWEST:
                raise UnsupportedTimestamp(f"timestamp {part.timestamp} in v{ctx.version}")
            services = ctx.services
            partition = partition_here(
                services.replicas.partitions, services.cluster.image, topic, index
            )
            if request.replica_id == DEBUGGING_REPLICA:
                read_fencing.check_readable(partition, part.current_leader_epoch)
            else:
                partition.check_leader(part.current_leader_epoch)
            if is_broker and request.replica_id >= 0:
                end = partition.log.end_offset
            else:
                end = read_fencing.visible_end(partition, read_committed=committed)
            requested = part.timestamp
            timestamp, offset, epoch = offset_for(
                partition, requested, end, found.get(partition.topic_partition)
            )
            if offset < 0 or requested == LATEST:
                read_fencing.check_latest_known(partition, end)
        except OffsetNotAvailable as error:
            known = ctx.version >= OFFSET_NOT_AVAILABLE_SINCE
            code = error.code if known else ErrorCode.LEADER_NOT_AVAILABLE
            return ListOffsetsPartitionResponse(partition_index=index, error_code=code)
        except PARTITION_ERRORS as error:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=code_of(error))
        return ListOffsetsPartitionResponse(
            partition_index=index, timestamp=timestamp, offset=offset, leader_epoch=epoch
        )

    topics = yield from by_topic(
        request.topics,
        lambda topic: {each.partition_index: each for each in topic.partitions}.values(),
        lambda topic, part: answer(topic.name, part),
        lambda topic, parts: ListOffsetsTopicResponse(name=topic.name, partitions=parts),
    )
    return ListOffsetsResponse(topics=topics)


def offset_for(
    partition: Partition, requested: int, end: int, found: Found
) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch of a record before `end`; -1 for each unknown one."""
    log = partition.log
    if requested == LATEST:
        return -1, end, partition.leader_epoch
    if requested in {EARLIEST, EARLIEST_LOCAL}:
        return -1, log.log_start_offset, epoch_at(partition, log.log_start_offset)
    if isinstance(found, Exception):
        raise found
    if found is None or found.offset >= end:
        return -1, -1, -1
    return found.timestamp, found.offset, epoch_at(partition, found.offset)


def epoch_at(partition: Partition, offset: int) -> int:
    epoch = partition.log.epochs.epoch_for(offset)
    return -1 if epoch is None else epoch
