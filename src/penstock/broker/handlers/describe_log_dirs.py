"""DescribeLogDirs (key 35, v1-v5): the log directories, their disks, and the logs in them.

Without topics, all logs are listed. A directory that is offline has an error, and no contents.
"""

import shutil
from collections.abc import Coroutine, Generator, Iterable
from typing import Any

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, by_topic, in_turns
from penstock.broker.replicas.cordoned import is_cordoned
from penstock.errors import ErrorCode
from penstock.log.log_dir import LogDir
from penstock.log.partition_log import PartitionLog
from penstock.types import TopicPartition
from penstock.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def describe_log_dirs(
    request: DescribeLogDirsRequest, ctx: Context
) -> DescribeLogDirsResponse | Coroutine[Any, Any, DescribeLogDirsResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: DescribeLogDirsRequest, ctx: Context
) -> Generator[None, None, DescribeLogDirsResponse]:
    named: set[TopicPartition] = set()
    yield from by_topic(
        request.topics or (),
        lambda each: each.partitions,
        lambda each, index: named.add(TopicPartition(each.topic, index)),
        lambda *_: None,
        a_turn=KEYS_A_TURN,
    )
    requested = None if request.topics is None else named
    return DescribeLogDirsResponse(
        results=[
            described(each, requested, ctx) for each in ctx.services.replicas.partitions.store.dirs
        ]
    )


def described(
    log_dir: LogDir, requested: set[TopicPartition] | None, ctx: Context
) -> DescribeLogDirsResult:
    path = str(log_dir.path)
    disk = usage(log_dir)
    if disk is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
    total_bytes, usable_bytes = disk
    store = ctx.services.replicas.partitions.store
    logs = [
        log
        for log in store.logs_in(log_dir)
        if requested is None or log.topic_partition in requested
    ]
    return DescribeLogDirsResult(
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(name=topic, partitions=[described_log(each, ctx) for each in mine])
            for topic, mine in grouped(logs).items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=is_cordoned(ctx.services.config.identity, log_dir.path),
    )


def usage(log_dir: LogDir) -> tuple[int, int] | None:
    """Bytes of the disk and free bytes; None if the directory failed, or vanished a moment ago."""
    if log_dir.failure is not None:
        return None
    try:
        disk = shutil.disk_usage(log_dir.path)
    except OSError:  # the next write takes it offline
        return None
    return disk.total, disk.free


def grouped(logs: Iterable[PartitionLog]) -> dict[str, list[PartitionLog]]:
    found: dict[str, list[PartitionLog]] = {}
    for log in sorted(logs, key=lambda log: log.topic_partition):
        found.setdefault(log.topic_partition.topic, []).append(log)
    return found


def described_log(log: PartitionLog, ctx: Context) -> DescribeLogDirsPartition:
    """`offset_lag` is the distance to the high watermark; for an unfinished copy, to the end of the
    copied log.
    """
    store, topic_partition = ctx.services.replicas.partitions.store, log.topic_partition
    is_future = store.future_logs.get(topic_partition) is log
    reached = store.logs[topic_partition].end_offset if is_future else log.high_watermark
    return DescribeLogDirsPartition(
        partition_index=topic_partition.partition,
        partition_size=log.size_bytes,
        offset_lag=max(reached - log.end_offset, 0),
        is_future_key=is_future,
    )
