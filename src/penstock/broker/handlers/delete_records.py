"""DeleteRecords (key 21, v0-v2): raise the log start offset, up to the high watermark (-1).

Answered when every live replica has done so.
Refused: offsets past the high watermark; internal topics; topics that are only compacted, whose
records are deleted by key.
"""

from collections.abc import Coroutine, Generator, Iterable
from typing import Any, TypeAlias

import msgspec

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.handling.turns import by_topic, in_turns
from penstock.broker.parked import Parked, client_wait_ms
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.topic_names import INTERNAL_TOPICS, InternalTopic
from penstock.replication.partition import Partition
from penstock.replication.partition_lookup import partition_here
from penstock.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


class CompactedOnly(KafkaError):
    """The topic does not allow deletion by offset."""

    code = ErrorCode.POLICY_VIOLATION


class NegativeOffset(KafkaError):
    """Offsets begin at 0; -1 stands for the high watermark."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class Deleting(msgspec.Struct, frozen=True):
    """A raised log start offset, which followers adopt with their next fetches."""

    index: int
    partition: Partition | None = None
    offset: int = -1
    refused: ErrorCode = ErrorCode.NONE

    def outcome(self) -> DeleteRecordsPartitionResult | None:
        """The result; None while followers lag behind."""
        if self.partition is None:
            return self._result(-1, self.refused)
        if not self.partition.leads:
            return self._result(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        reached = lowest_start(self.partition)
        return self._result(reached) if reached >= self.offset else None

    def late(self) -> DeleteRecordsPartitionResult:
        return self.outcome() or self._result(-1, ErrorCode.REQUEST_TIMED_OUT)

    def _result(
        self, low_watermark: int, code: ErrorCode = ErrorCode.NONE
    ) -> DeleteRecordsPartitionResult:
        return DeleteRecordsPartitionResult(
            partition_index=self.index, low_watermark=low_watermark, error_code=code
        )


def lowest_start(partition: Partition) -> int:
    """Smallest log start offset of live replicas; deleted records before it are gone."""
    starts = (
        state.log_start_offset
        for replica, state in partition.followers.items()
        if partition.environment.is_eligible(replica, state.broker_epoch)
    )
    return min([partition.log.log_start_offset, *starts])


Reply: TypeAlias = DeleteRecordsResponse | Parked[DeleteRecordsResponse]


def delete_records(
    request: DeleteRecordsRequest, ctx: Context
) -> Reply | Coroutine[Any, Any, Reply]:
    return in_turns(answered(request, ctx))


def answered(request: DeleteRecordsRequest, ctx: Context) -> Generator[None, None, Reply]:
    topics = yield from by_topic(
        request.topics,
        lambda topic: named_once(topic.partitions),
        lambda topic, part: moved(topic.name, part, ctx),
        lambda topic, parts: decided(topic.name, parts),
    )
    waiting = [each for topic in topics if isinstance(topic, tuple) for each in topic[1]]

    def attempt() -> DeleteRecordsResponse | None:
        return None if any(each.outcome() is None for each in waiting) else expire()

    def expire() -> DeleteRecordsResponse:
        return DeleteRecordsResponse(
            topics=[late(*each) if isinstance(each, tuple) else each for each in topics]
        )

    keys = [each.partition.topic_partition for each in waiting if each.partition is not None]
    return attempt() or Parked(keys, client_wait_ms(request.timeout_ms), attempt, expire)


def decided(
    name: str, parts: list[Deleting]
) -> DeleteRecordsTopicResult | tuple[str, list[Deleting]]:
    """The result of a topic that has nothing to wait for."""
    return late(name, parts) if all(each.partition is None for each in parts) else (name, parts)


def late(name: str, parts: list[Deleting]) -> DeleteRecordsTopicResult:
    return DeleteRecordsTopicResult(name=name, partitions=[each.late() for each in parts])


def named_once(partitions: Iterable[DeleteRecordsPartition]) -> Iterable[DeleteRecordsPartition]:
    return {each.partition_index: each for each in partitions}.values()


def moved(topic: str, part: DeleteRecordsPartition, ctx: Context) -> Deleting:
    """Raise the leader's log start offset."""
    index = part.partition_index
    try:
        if topic in INTERNAL_TOPICS:
            raise InternalTopic(f"Cannot delete records of internal topic {topic}")
        services = ctx.services
        partition = partition_here(
            services.replicas.partitions, services.cluster.image, topic, index
        )
        partition.check_leader()
        log = partition.log
        policy = log.config.cleanup_policy
        if "compact" in policy and "delete" not in policy:  # with neither, it is allowed
            raise CompactedOnly(f"{topic} has cleanup.policy=compact")
        if part.offset < -1:
            raise NegativeOffset(f"offset {part.offset}")
        offset = log.high_watermark if part.offset == -1 else part.offset
        log.maybe_increment_log_start(offset)
    except PARTITION_ERRORS as error:
        return Deleting(index, refused=code_of(error))
    ctx.services.waiters.changed(partition.topic_partition)
    return Deleting(index, partition, offset)
