"""Produce (key 0, v3-v13): append each batch to the log of its partition's leader.

Refused: internal topics; acks other than -1, 0, 1; what `record.validate` refuses; batches outside
of their producer's transaction, of which from v12 on they make the partition a part. With acks=0 an
error closes the connection, since there is no other way to tell. Refusals name the records at fault
(v8) and the leader to turn to (v10).
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

import msgspec

from penstock.broker.context import Context
from penstock.broker.error_code import PARTITION_ERRORS, code_of
from penstock.broker.transaction.produce_verification import ProduceVerification
from penstock.broker.waiters import Parked, client_wait_ms
from penstock.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES
from penstock.metadata.leaders import endpoints, leader_of
from penstock.metadata.topic_names import INTERNAL_TOPICS, InternalTopic, topic_name
from penstock.record.batch import BatchHeader, CorruptBatch
from penstock.record.compression import Codec, DecompressionLimit
from penstock.record.rejected import RejectedRecords
from penstock.record.stored import stored
from penstock.record.validate import BatchTooLarge, NotOneBatch, check_produced
from penstock.replication import fencing
from penstock.replication.fencing import NotLeader
from penstock.replication.partition import Partition
from penstock.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


class TransactionalIdMissing(KafkaError):
    """Who writes in a transaction says in which one, and may be asked whether it may."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class InvalidRequiredAcks(KafkaError):
    """Neither 0, 1 nor -1."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class UnsupportedCodec(KafkaError):
    """zstd needs Produce v7, so that only consumers that know it meet it (KIP-110)."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class CorruptRecords(KafkaError):
    """No records where there must be some."""

    code = ErrorCode.CORRUPT_MESSAGE


UNREAD = (
    CorruptBatch,
    CorruptRecords,
    NotOneBatch,
    BatchTooLarge,
    UnsupportedCodec,
    TransactionalIdMissing,
    StorageError,
)


Batch: TypeAlias = bytearray | memoryview

AT_ONCE_BYTES = 1 << 22
"""Of records, decompressed, that a request has checked before others get their turn. A batch with
more of them is checked on another thread: some kilobytes may hold hundreds of megabytes.
"""


class TurnOverError(Exception):
    """Others get their turn before the rest of a request."""


class Pending(msgspec.Struct, frozen=True):
    """An append that may not be acknowledged yet, and the answer that says it is done."""

    partition: Partition
    answer: PartitionProduceResponse
    last_offset: int
    needs_flush: bool
    tenure: int
    """Of the partition's leader when it was appended."""

    def is_done(self, acks: int) -> bool:
        log = self.partition.log
        if self.needs_flush and log.recovery_point <= self.last_offset:
            return False
        return acks != -1 or log.high_watermark > self.last_offset

    def outcome(self, acks: int) -> ErrorCode | None:
        """What to tell the producer of it later on; None: nothing yet."""
        partition = self.partition
        if partition.log.log_dir.failure is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if acks == -1 and not partition.is_in_tenure(self.tenure):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER  # it may have been cut off, or yet be kept
        if not self.is_done(acks):
            return None
        if acks == -1 and not partition.has_enough_replicas():
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE


Answer = ProduceResponse | Parked[ProduceResponse] | None


def produce(request: ProduceRequest, ctx: Context) -> Answer | Coroutine[None, None, Answer]:
    verification = verification_of(request, ctx)
    if verification is not None and verification.is_pending:
        return asked_first(kept(request), ctx, verification)
    return append(request, ctx, verification)


def verification_of(request: ProduceRequest, ctx: Context) -> ProduceVerification | None:
    """None outside of transactions."""
    if request.transactional_id is None:
        return None
    services = ctx.services
    return ProduceVerification(
        request,
        ctx.version,
        services.coordination.verifier,
        services.cluster,
        services.replicas.partitions,
    )


async def asked_first(
    request: ProduceRequest, ctx: Context, verification: ProduceVerification
) -> Answer:
    """The transaction's coordinator is on another broker, or its record not committed yet."""
    try:
        await verification.wait()
        now_ms = ctx.services.resources.clock.now_ms()
        ctx = msgspec.structs.replace(ctx, now_ms=now_ms)
        answer = append(request, ctx, verification, is_kept=True)
        return await answer if isinstance(answer, Coroutine) else answer
    finally:
        verification.close()


def kept(request: ProduceRequest) -> ProduceRequest:
    """A copy, since records are views of a buffer that is used again while the request waits."""
    replace = msgspec.structs.replace

    def copied(part: PartitionProduceData) -> PartitionProduceData:
        data = part.records
        if not isinstance(data, memoryview):
            return part
        return replace(part, records=memoryview(bytearray(data)))

    return replace(
        request,
        topic_data=[
            replace(topic, partition_data=[copied(each) for each in topic.partition_data])
            for topic in request.topic_data
        ],
    )


def append(
    request: ProduceRequest,
    ctx: Context,
    verification: ProduceVerification | None,
    *,
    is_kept: bool = False,
) -> Answer | Coroutine[None, None, Answer]:
    appending = Appending(request, ctx, verification, is_kept=is_kept)
    try:
        response = appending.response(request)
    except TurnOverError:
        return by_turns(request if is_kept else kept(request), ctx, appending)
    return answered(request, ctx, appending, response)


async def by_turns(request: ProduceRequest, ctx: Context, appending: "Appending") -> Answer:
    """Others get theirs in between, and may end the transaction: its coordinator is asked anew."""
    appending.is_kept = True
    while True:
        await appending.pause()
        appending.verification = verification = verification_of(request, ctx)
        try:
            if verification is not None:
                await verification.wait()
            response = appending.response(request)
        except TurnOverError:
            continue
        finally:
            if verification is not None:
                verification.close()
        return answered(request, ctx, appending, response)


def answered(
    request: ProduceRequest, ctx: Context, appending: "Appending", response: ProduceResponse
) -> Answer:
    if request.acks == 0:
        if appending.refused:
            raise ProtocolError(f"acks=0 cannot be answered: {appending.refused}")
        return None
    if appending.is_led_elsewhere:
        response = with_leaders(response, ctx)
    if all(each.is_done(request.acks) for each in appending.pending):
        return response
    return parked(request, response, appending.pending, ctx)


class Appending:
    """One pass over the partitions of a request."""

    def __init__(
        self,
        request: ProduceRequest,
        ctx: Context,
        verification: ProduceVerification | None,
        *,
        is_kept: bool,
    ) -> None:
        self._acks, self._ctx, self.verification = request.acks, ctx, verification
        self.is_kept = is_kept
        """Whether the records are in memory of their own, where another thread may check them."""
        self._now_ms = ctx.now_ms
        self._answers: list[PartitionProduceResponse] = []
        self._former: deque[PartitionProduceResponse] | None = None
        """Of `_answers`, those of former turns that this one has not come by again."""
        self._turn_bytes = 0
        self._is_large = False
        """Whether the next batch is known to be too large to be checked on the loop."""
        self._off_loop: Future[tuple[Batch, BatchHeader, int]] | None = None
        """The check of the next batch, if it is a large one."""
        self.pending: list[Pending] = []
        self.refused: Exception | None = None
        self.is_led_elsewhere = False

    def response(self, request: ProduceRequest) -> ProduceResponse:
        """Append what is left of the request; `TurnOverError` if it takes another turn."""
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        self._append(topic, part) for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
                if topic.partition_data
            ]
        )

    async def pause(self) -> None:
        """Until the next turn."""
        self._turn_bytes, self._former = 0, deque(self._answers)
        if self._off_loop is None:
            await asyncio.sleep(0)
        else:
            with suppress(KafkaError):  # told in the answer for its partition
                await asyncio.wrap_future(self._off_loop)
        # The time of the append: batches of others may have been appended meanwhile.
        self._now_ms = self._ctx.services.resources.clock.now_ms()

    def _append(
        self, topic: TopicProduceData, part: PartitionProduceData
    ) -> PartitionProduceResponse:
        if self._former:
            return self._former.popleft()
        if self._turn_bytes >= AT_ONCE_BYTES:
            raise TurnOverError
        services = self._ctx.services
        log_start_offset = -1
        try:
            if self._acks not in {-1, 0, 1}:
                raise InvalidRequiredAcks(f"acks={self._acks}")
            image = services.cluster.image
            name = topic_name(topic.name, topic.topic_id, image, by_id=self._ctx.version >= 13)
            if name in INTERNAL_TOPICS:
                raise InternalTopic(f"Cannot append to internal topic {name}")
            replicas = services.replicas
            partition = fencing.partition_here(replicas.partitions, image, name, part.index)
            fencing.check_leader(partition)
            log_start_offset = partition.log.log_start_offset
            batch, header = self._checked(part.records, partition)
            appended = replicas.leader_append(partition, batch, header, self._acks, self._now_ms)
        except PARTITION_ERRORS as error:
            self.refused = error
            self.is_led_elsewhere |= isinstance(error, NotLeader)
            self._off_loop, self._is_large = None, False
            answer = refused(part.index, error, log_start_offset)
            self._answers.append(answer)
            return answer
        answer = PartitionProduceResponse(
            index=part.index,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.log_append_time,
            log_start_offset=appended.log_start_offset,
        )
        self.pending.append(
            Pending(partition, answer, appended.last_offset, appended.flush_due, partition.tenure)
        )
        self._answers.append(answer)
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
        if self._off_loop is not None:
            batch, header, _ = self._off_loop.result()
            self._off_loop, self._is_large = None, False
            return batch, header
        # Compressed to more than that, it holds more than that.
        self._is_large |= header.codec is not Codec.NONE and len(data) > AT_ONCE_BYTES
        if self._is_large:
            self._check_off_loop(data, header, partition)
            raise TurnOverError
        self._turn_bytes += AT_ONCE_BYTES  # what is refused half way may have cost as much
        try:
            batch, header, walked_bytes = stored(
                data,
                header,
                partition.rules,
                partition.topic_partition,
                now_ms=self._now_ms,
                limit_bytes=AT_ONCE_BYTES,
                scratch=self._ctx.services.resources.scratch,
            )
        except DecompressionLimit:
            self._is_large = True
            self._check_off_loop(data, header, partition)
            raise TurnOverError from None
        self._turn_bytes += walked_bytes - AT_ONCE_BYTES
        return batch, header

    def _check_off_loop(self, data: memoryview, header: BatchHeader, partition: Partition) -> None:
        """Begin to; if the records are not kept yet, in the next turn."""
        if self.is_kept:
            self._off_loop = self._ctx.services.resources.worker.submit(
                stored,
                data,
                header,
                partition.rules,
                partition.topic_partition,
                now_ms=self._now_ms,
                limit_bytes=DECOMPRESSED_LIMIT_BYTES,
            )


def refused(index: int, error: Exception, log_start_offset: int) -> PartitionProduceResponse:
    """The answer for a batch that was not appended.

    The start of the log is told unless the partition was not reached or the data was no batch.
    """
    unread = isinstance(error, UNREAD)
    at_fault = error.errors if isinstance(error, RejectedRecords) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=code_of(error),
        base_offset=-1,
        log_start_offset=-1 if unread else log_start_offset,
        error_message=str(error),
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=each.batch_index, batch_index_error_message=each.message
            )
            for each in at_fault
        ],
    )


def with_leaders(response: ProduceResponse, ctx: Context) -> ProduceResponse:
    """The response, in which refusals by a broker that does not lead tell who does (KIP-951)."""
    image, leaders, replace = ctx.services.cluster.image, set[int](), msgspec.structs.replace

    def told(topic: str, answer: PartitionProduceResponse) -> PartitionProduceResponse:
        found = leader_of(image, topic, answer.index)
        if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or found is None:
            return answer
        leaders.add(found[0])
        leader = LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
        return replace(answer, current_leader=leader)

    topics = [
        replace(
            topic,
            partition_responses=[
                told(topic.name or image.topic_names.get(topic.topic_id, ""), each)
                for each in topic.partition_responses
            ],
        )
        for topic in response.responses
    ]
    nodes = [
        NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
        for broker, host, port in endpoints(image, ctx.peer.listener, leaders)
    ]
    return replace(response, responses=topics, node_endpoints=nodes)


def parked(
    request: ProduceRequest, response: ProduceResponse, pending: list[Pending], ctx: Context
) -> Parked[ProduceResponse]:
    """Answer once every append is replicated and flushed as far as it must be."""
    acks = request.acks  # and no more of the request, whose bytes are gone by then

    def attempt() -> ProduceResponse | None:
        waiting = any(each.outcome(acks) is None for each in pending)
        return None if waiting else finished()

    def finished() -> ProduceResponse:
        late = ErrorCode.REQUEST_TIMED_OUT
        outcomes = [(each, each.outcome(acks)) for each in pending]
        told = with_errors(
            response,
            {id(each.answer): late if code is None else code for each, code in outcomes},
        )
        led_elsewhere = any(code is ErrorCode.NOT_LEADER_OR_FOLLOWER for _, code in outcomes)
        return with_leaders(told, ctx) if led_elsewhere else told

    keys = [each.partition.topic_partition for each in pending]
    return Parked(keys, client_wait_ms(request.timeout_ms), attempt, finished, has_acted=True)


def with_errors(response: ProduceResponse, errors: dict[int, ErrorCode]) -> ProduceResponse:
    """The response with what went wrong after the append, by the identity of each answer."""
    replace = msgspec.structs.replace

    def told(answer: PartitionProduceResponse) -> PartitionProduceResponse:
        code = errors.get(id(answer), ErrorCode.NONE)
        return replace(answer, error_code=code, base_offset=-1) if code else answer

    return replace(
        response,
        responses=[
            replace(topic, partition_responses=[told(each) for each in topic.partition_responses])
            for topic in response.responses
        ],
    )
