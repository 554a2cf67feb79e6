"""TxnOffsetCommit (key 28, v0-v6): offsets that count if the producer's transaction commits.

Refused: offsets of groups that are not part of the transaction (from v5 on they become it);
members of another generation; partitions that do not exist; metadata that is too long.
"""

from penstock.broker.context import Context
from penstock.broker.transactions import as_producers_know_it, take_part
from penstock.broker.translate.commits import Place, codes, places
from penstock.broker.translate.tickets import answered
from penstock.broker.waiters import Parked
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.group.decision import Refused
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.group.refusal import GroupIdNotFound
from penstock.coordinator.refusal import CoordinatorNotAvailable
from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import ConcurrentTransactions
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

Places = list[tuple[TxnOffsetCommitRequestTopic, list[Place]]]

KNOWN_AS: dict[type[KafkaError], ErrorCode] = {GroupIdNotFound: ErrorCode.ILLEGAL_GENERATION}


def txn_offset_commit(
    request: TxnOffsetCommitRequest, ctx: Context
) -> TxnOffsetCommitResponse | Parked[TxnOffsetCommitResponse]:
    image, by_id = ctx.services.cluster.image, ctx.version >= 6
    named: Places = [(topic, places(topic, image, by_id=by_id)) for topic in request.topics]
    offsets = tuple(
        (where, committed(part, where, ctx))
        for topic, wheres in named
        for part, where in zip(topic.partitions, wheres, strict=True)
        if isinstance(where, TopicPartition)
    )
    if not offsets:
        return respond(named, ())
    producer = Producer(request.producer_id, request.producer_epoch)
    refused = outside_of_transaction(request, producer, ctx)
    if refused is not None:
        return respond(named, (refused,) * len(offsets))
    ticket = ctx.services.groups.commit(
        request.group_id,
        Committer(
            generation=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            is_transactional=True,
        ),
        offsets,
        producer,
    )

    def finish(replies: list[tuple[Refused, ...] | KafkaError]) -> TxnOffsetCommitResponse:
        (reply,) = replies
        return respond(named, (reply,) * len(offsets) if isinstance(reply, KafkaError) else reply)

    return answered([ticket], finish, ctx, ctx.services.config.group.offsets_commit_timeout_ms)


def outside_of_transaction(
    request: TxnOffsetCommitRequest, producer: Producer, ctx: Context
) -> KafkaError | None:
    """Why these offsets cannot be part of the producer's transaction, if they cannot."""
    partition = ctx.services.groups.partition_of(request.group_id)
    where = TopicPartition(CONSUMER_OFFSETS, partition)
    adds = ctx.version >= 5
    try:
        take_part(request.transactional_id, producer, where, ctx.services, adds=adds)
    except ConcurrentTransactions as error:
        # Only clients that add implicitly know that they may try this again.
        return error if adds else CoordinatorNotAvailable(str(error))
    except KafkaError as error:
        return as_producers_know_it(error, knows_abortable=ctx.version >= 4)
    return None


def committed(
    part: TxnOffsetCommitRequestPartition, where: TopicPartition, ctx: Context
) -> CommittedOffset:
    return CommittedOffset(
        part.committed_offset,
        part.committed_leader_epoch,
        part.committed_metadata or "",
        commit_ms=ctx.now_ms,
        topic_id=ctx.services.cluster.image.topics[where.topic].id,
    )


def respond(named: Places, replies: tuple[Refused, ...]) -> TxnOffsetCommitResponse:
    """Each partition with its own answer, in the order of the request."""
    code = codes(replies, KNOWN_AS)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=part.partition_index, error_code=code(where)
                    )
                    for part, where in zip(topic.partitions, wheres, strict=True)
                ],
            )
            for topic, wheres in named
        ]
    )
