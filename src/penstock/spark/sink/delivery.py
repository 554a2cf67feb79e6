"""What a leader's answer means for the batches that were sent, and for those behind them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.sink.batching import Sealed
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
    """Rows that a topic did not take: which topic, why, and what to do where that is known."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch, and what was said of it; a connection that broke said NETWORK_EXCEPTION."""

    batch: Sealed
    code: int
    words: str | None = None


def unwritten(answers: Iterable[Answered]) -> list[Sealed]:
    """The batches to be sent again, of answers in the order of sending; raises a refusal.

    When a batch is put off, those behind it in its partition are out of sequence, and that is no
    refusal: they follow it again.
    """
    again: list[Sealed] = []
    put_off: set[TopicPartition] = set()
    refusal: KafkaError | None = None
    for each in answers:
        place = each.batch.place
        if each.code in WRITTEN:
            continue
        out_of_sequence = each.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if each.code in RETRIABLE or (out_of_sequence and place in put_off):
            again.append(each.batch)
            put_off.add(place)
        else:
            refusal = refusal or NotWritten(
                each.code, f"{each.batch.count} rows to {place}", advice(each.code, each.words)
            )
    if refusal is not None:
        raise refusal
    return again


def firsts(batches: Sequence[Sealed]) -> list[Sealed]:
    """The first batch of each partition: what may be sent when nothing else is on its way."""
    first: dict[TopicPartition, Sealed] = {}
    for batch in batches:
        first.setdefault(batch.place, batch)
    return list(first.values())


def advice(code: int, words: str | None = None) -> str | None:
    """The broker's words, and what a user can do."""
    what = None
    if code == ErrorCode.MESSAGE_TOO_LARGE:
        what = "lower kafka.batch.size below the topic's max.message.bytes, or raise that"
    elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        what = (
            "another task writes to this partition as well; with transactional=true each output "
            "partition must be written by one task: repartitionById by the target partition"
        )
    elif code in _FENCED:
        what = (
            "the transaction was ended by a newer run of this query, or it took longer than "
            "kafka.transaction.timeout.ms"
        )
    elif code in {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}:
        what = "the principal needs WRITE on the topic"
    elif code == ErrorCode.INVALID_RECORD:
        what = "a compacted topic takes no row without key"
    return "; ".join(part for part in (words, what) if part) or None
