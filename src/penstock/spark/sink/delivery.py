"""Interprets a leader's responses: which batches are written, retried or rejected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.sink.accumulator import SealedBatch
from penstock.types import TopicPartition

WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
_FENCED: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)


class NotWritten(BrokerRefused):
    """A broker rejected rows; the text names the partition, the cause and, if known, the remedy."""


@dataclass(frozen=True, slots=True)
class BatchResponse:
    """A batch and the broker's response to it; NETWORK_EXCEPTION if the connection broke."""

    batch: SealedBatch
    code: int
    message: str | None = None


def unwritten(responses: Iterable[BatchResponse]) -> list[SealedBatch]:
    """The batches to send again, from responses in the order of sending.

    Raises `NotWritten` for an error that is not retriable. OUT_OF_ORDER_SEQUENCE_NUMBER is
    retriable behind a batch of the same partition that has to be sent again.
    """
    again: list[SealedBatch] = []
    retried: set[TopicPartition] = set()
    rejection: KafkaError | None = None
    for each in responses:
        tp = each.batch.topic_partition
        if each.code in WRITTEN:
            continue
        out_of_sequence = each.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if each.code in RETRIABLE or (out_of_sequence and tp in retried):
            again.append(each.batch)
            retried.add(tp)
        else:
            rejection = rejection or NotWritten(
                each.code,
                f"{each.batch.count} rows to {tp}",
                advice(each.code, each.message),
            )
    if rejection is not None:
        raise rejection
    return again


def firsts(batches: Sequence[SealedBatch]) -> list[SealedBatch]:
    """The first batch of each partition: these may be sent when no request is in flight."""
    first: dict[TopicPartition, SealedBatch] = {}
    for batch in batches:
        first.setdefault(batch.topic_partition, batch)
    return list(first.values())


def advice(code: int, message: str | None = None) -> str | None:
    """The broker's error message, and what the user can do."""
    remedy = None
    if code == ErrorCode.MESSAGE_TOO_LARGE:
        remedy = "lower kafka.batch.size below the topic's max.message.bytes, or raise that"
    elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        remedy = (
            "another task writes to this partition as well; with transactional=true each output "
            "partition must be written by one task: repartitionById by the target partition"
        )
    elif code in _FENCED:
        remedy = (
            "the transaction was ended by a newer run of this query, or it took longer than "
            "kafka.transaction.timeout.ms"
        )
    elif code in {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}:
        remedy = "the principal needs WRITE on the topic"
    elif code == ErrorCode.INVALID_RECORD:
        remedy = "a compacted topic needs a key in every row"
    return "; ".join(part for part in (message, remedy) if part) or None
