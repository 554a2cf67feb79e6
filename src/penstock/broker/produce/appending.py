"""Checks and appends the batches of one produce request, in turns."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Final

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS
from penstock.broker.produce.errors import (
    CorruptRecords,
    InvalidRequiredAcks,
    TransactionalIdMissing,
    UnsupportedCodec,
    refused,
)
from penstock.broker.produce.off_loop_check import Batch, OffLoopCheck
from penstock.broker.transaction.produce_verification import ProduceVerification
from penstock.errors import KafkaError
from penstock.metadata.topic_names import INTERNAL_TOPICS, InternalTopic
from penstock.record.batch import BatchHeader
from penstock.record.compression import Codec, DecompressionLimit
from penstock.record.rejected import EXAMINED
from penstock.record.rules import BatchRules
from penstock.record.validate import check_produced, stored
from penstock.replication.errors import NotLeader
from penstock.replication.partition import Partition
from penstock.replication.partition_lookup import partition_here, topic_name
from penstock.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

TURN_BYTES: Final = 1 << 20
"""Decompressed bytes that one request may check before other requests get a turn. A larger batch is
checked on another thread: a few kilobytes may hold hundreds of megabytes.
"""
GZIP_TURN_BYTES: Final = TURN_BYTES >> 2
"""The limit for gzip, which is three to five times slower than the other codecs."""
SLOW_TURN_BYTES: Final = TURN_BYTES >> 4
"""The limit if the topic sets a compression level: zstd's highest takes 100 ms for 256 KB."""
GZIP: Final = Codec.GZIP
TURN_PARTITIONS: Final = 500
"""Partitions of one turn: refused ones have no bytes to count."""
TURN_MS: Final = 5
"""The time of one turn: each batch may begin a new segment, whose files take a millisecond, and the
CRC of a large one is wrong only after it was computed.
"""


class TurnOverError(Exception):
    """The rest of the request must wait for the next turn."""


def most_on_loop(codec: Codec, rules: BatchRules) -> int:
    """Decompressed bytes of the largest batch that is checked, and recompressed, on the loop."""
    if rules.codec_level is not None:
        return SLOW_TURN_BYTES
    return GZIP_TURN_BYTES if codec is GZIP or rules.codec is GZIP else TURN_BYTES


class PendingAppend:
    """An append that may have to wait for replicas or a flush, and its acknowledgement."""

    def __init__(
        self,
        partition: Partition,
        answer: PartitionProduceResponse,
        last_offset: int,
        *,
        needs_flush: bool,
    ) -> None:
        self.partition, self.answer = partition, answer
        self.last_offset, self.needs_flush = last_offset, needs_flush
        self.tenure = partition.tenure
        """The partition's tenure (this broker's time as its leader) at the append."""

    def is_done(self, acks: int) -> bool:
        log = self.partition.log
        if self.needs_flush and log.recovery_point <= self.last_offset:
            return False
        return acks != -1 or log.high_watermark > self.last_offset


class Appending:
    """Appends the batches of one request, in one or more turns of the event loop."""

    def __init__(
        self,
        request: ProduceRequest,
        ctx: Context,
        verification: ProduceVerification | None,
        *,
        is_copied: bool,
    ) -> None:
        self._acks, self._ctx, self.verification = request.acks, ctx, verification
        self.is_copied = is_copied
        """Whether the records are copied out of the frame, so that another thread may read them."""
        self._now_ms = ctx.now_ms
        self._responses: list[TopicProduceResponse] = []
        self._answers: list[PartitionProduceResponse] = []
        """Answers so far for the topic at `_at`."""
        self._at = 0
        self.has_paused = False
        """Whether batches of this request may have been appended in different turns."""
        self._turn_bytes = self._turn_partitions = self._turn_ends_ms = 0
        self._off_loop: OffLoopCheck | None = None
        """The check of the next batch, if that is known to be too large to check on the loop."""
        self.pending: list[PendingAppend] = []
        self._named_records = 0
        """Invalid records named in the response so far. A hundred bytes may hold thousands of
        records, and a request thousands of batches, so records are named up to `EXAMINED`.
        """
        self.refused: Exception | None = None
        self.is_led_elsewhere = False

    def response(self, request: ProduceRequest) -> ProduceResponse:
        """Append the rest of the request; raises `TurnOverError` if that takes another turn."""
        topics = request.topic_data
        while self._at < len(topics):
            topic = topics[self._at]
            parts, answers = topic.partition_data, self._answers
            while len(answers) < len(parts):
                answers.append(self._append(topic, parts[len(answers)]))
            if parts:
                self._responses.append(
                    TopicProduceResponse(
                        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                    )
                )
                self._answers = []
            self._at += 1
        return ProduceResponse(responses=self._responses)

    async def pause(self) -> None:
        """Wait for the next turn, or for the check on another thread."""
        self._turn_bytes, self._turn_partitions, self.has_paused = 0, 0, True
        future = None if self._off_loop is None else self._off_loop.future
        if future is None:
            await asyncio.sleep(0)
        else:
            with suppress(KafkaError):  # the response carries the error for its partition
                await asyncio.wrap_future(future)
        # Other requests may have appended meanwhile, so this append is later than they are.
        self._now_ms = self._ctx.services.resources.clock.now_ms()

    def _is_turn_over(self) -> bool:
        """Whether the next partition has to wait. Most requests have only one, and read no time."""
        if self._turn_bytes >= TURN_BYTES or self._turn_partitions >= TURN_PARTITIONS:
            return True
        now_ms = self._ctx.services.resources.clock.monotonic_ms()
        if self._turn_partitions == 1:
            self._turn_ends_ms = now_ms + TURN_MS
        return now_ms > self._turn_ends_ms

    def _append(
        self, topic: TopicProduceData, part: PartitionProduceData
    ) -> PartitionProduceResponse:
        if self._turn_partitions and self._is_turn_over():
            raise TurnOverError
        self._turn_partitions += 1
        services = self._ctx.services
        log_start_offset = -1
        try:
            if self._acks not in {-1, 0, 1}:
                raise InvalidRequiredAcks(f"acks={self._acks}")
            image = services.cluster.image
            name = topic_name(topic.name, topic.topic_id, image, by_id=self._ctx.version >= 13)
            if name in INTERNAL_TOPICS:
                raise InternalTopic(f"Cannot append to internal topic {name}")
            partition = partition_here(services.replicas.partitions, image, name, part.index)
            partition.check_leader()
            log_start_offset = partition.log.log_start_offset
            batch, header = self._checked(part.records, partition)
            appended = partition.append(batch, header, self._acks, self._now_ms)
        except PARTITION_ERRORS as error:
            self.refused = error
            services.replicas.partitions.failed_produces += 1
            self.is_led_elsewhere |= isinstance(error, NotLeader)
            self._off_loop = None
            answer = refused(part.index, error, log_start_offset)
            self._named_records += len(answer.record_errors)
            return answer
        answer = PartitionProduceResponse(
            index=part.index,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.log_append_time,
            log_start_offset=appended.log_start_offset,
        )
        needs_flush = appended.flush_due
        self.pending.append(
            PendingAppend(partition, answer, appended.last_offset, needs_flush=needs_flush)
        )
        return answer

    def _checked(self, data: object, partition: Partition) -> tuple[Batch, BatchHeader]:
        """The batch as it will be stored, and its header."""
        if not isinstance(data, memoryview):
            raise CorruptRecords("a partition without records")
        header = check_produced(data, partition.rules)
        data = data[: header.size_bytes]
        if header.is_transactional:
            if self.verification is None:
                raise TransactionalIdMissing("a transactional batch in a request without its id")
            self.verification.check(header, partition)
        if self._ctx.version < 7 and header.codec is Codec.ZSTD:
            raise UnsupportedCodec("zstd needs Produce v7")
        rules, codec = partition.rules, header.codec
        limit_bytes = most_on_loop(codec, rules)
        # Most records compress to less than a quarter: a first try on the loop would be wasted.
        if self._off_loop is None and codec is not Codec.NONE and len(data) > limit_bytes // 4:
            is_huge = len(data) > TURN_BYTES // 4 or rules.codec_level is not None
            self._off_loop = OffLoopCheck(self._ctx.services.resources, is_huge=is_huge)
        if self._off_loop is not None:
            checked = self._off_loop.result()
            if checked is None:
                self._check_off_loop(self._off_loop, data, header, partition)
                raise TurnOverError
            self._off_loop = None
            return checked
        # Counted in full first: a batch refused half way may have cost as much.
        self._turn_bytes += TURN_BYTES
        try:
            batch, header, walked_bytes = stored(
                data,
                header,
                rules,
                partition.topic_partition,
                now_ms=self._now_ms,
                limit_bytes=limit_bytes,
                scratch=self._ctx.services.resources.scratch,
                names_records=self._named_records < EXAMINED,
            )
        except DecompressionLimit:
            is_huge = len(data) > TURN_BYTES // 4 or limit_bytes != GZIP_TURN_BYTES
            self._off_loop = OffLoopCheck(self._ctx.services.resources, is_huge=is_huge)
            self._check_off_loop(self._off_loop, data, header, partition)
            raise TurnOverError from None
        self._turn_bytes += walked_bytes * (TURN_BYTES // limit_bytes) - TURN_BYTES
        return batch, header

    def _check_off_loop(
        self, check: OffLoopCheck, data: memoryview, header: BatchHeader, partition: Partition
    ) -> None:
        """Begin the check on another thread; if the records are not copied yet, the next turn does
        both.
        """
        if self.is_copied:
            batch = data, header, partition.rules, partition.topic_partition
            names = self._named_records < EXAMINED
            check.begin(partial(stored, *batch, now_ms=self._now_ms, names_records=names))
