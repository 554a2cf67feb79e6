"""The records of `__transaction_state`, in Kafka's format; both versions are read."""

from collections.abc import Callable
from struct import Struct

import msgspec

from penstock.coordinator.storage import RawRecord
from penstock.coordinator.transaction.state import BY_NUMBER, TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.errors import ProtocolError
from penstock.types import TopicPartition, indexes_by_topic
from penstock.wire.apis import DATA_MESSAGES
from penstock.wire.codec import decode, encode
from penstock.wire.messages.transaction_log_key import TransactionLogKey
from penstock.wire.messages.transaction_log_value import PartitionsSchema, TransactionLogValue

_NUMBER = Struct(">h")
_KEY = 0
FLEXIBLE = 1
"""The first `transaction.version` whose records have tagged fields."""


class TransactionRecord(msgspec.Struct, frozen=True):
    """The new state of a transactional id; None: the id has expired."""

    transactional_id: str
    transaction: TransactionMetadata | None


class TransactionFormat:
    """A key starts with the record type, a value with the version of its message.

    `level` is the cluster's `transaction.version`: at 0, older brokers can read the records too.
    """

    def __init__(self, level: Callable[[], int] = lambda: FLEXIBLE) -> None:
        self._level = level

    def encode(self, record: TransactionRecord) -> RawRecord:
        key = encode(TransactionLogKey(record.transactional_id), _KEY, _NUMBER.pack(_KEY))
        known = record.transaction
        if known is None:
            return RawRecord(key, None)
        version = min(self._level(), FLEXIBLE)
        return RawRecord(key, encode(_value(known), version, _NUMBER.pack(version)))

    def decode(self, raw: RawRecord) -> TransactionRecord | None:
        if _number(raw.key) != _KEY:
            return None
        transactional_id = decode(TransactionLogKey, _KEY, raw.key[_NUMBER.size :]).transactional_id
        if raw.value is None:
            return TransactionRecord(transactional_id, None)
        version = _number(raw.value)
        if not 0 <= version <= DATA_MESSAGES["TransactionLogValue"].high:
            raise ProtocolError(f"TransactionLogValue v{version} is newer than this broker")
        value = decode(TransactionLogValue, version, raw.value[_NUMBER.size :])
        return TransactionRecord(transactional_id, _transaction(value))


def _number(data: bytes) -> int:
    if len(data) < _NUMBER.size:
        raise ProtocolError("a transaction record is too short for its type or version")
    number: int = _NUMBER.unpack_from(data)[0]
    return number


def _value(known: TransactionMetadata) -> TransactionLogValue:
    by_topic = indexes_by_topic(sorted(known.partitions))
    partitions = [PartitionsSchema(topic, each) for topic, each in by_topic.items()]
    return TransactionLogValue(
        producer_id=known.producer_id,
        previous_producer_id=known.previous_producer_id,
        next_producer_id=known.next_producer_id,
        producer_epoch=known.producer_epoch,
        transaction_timeout_ms=known.timeout_ms,
        transaction_status=known.state.number,
        transaction_partitions=None if known.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=known.updated_ms,
        transaction_start_timestamp_ms=known.start_ms,
        client_transaction_version=known.client_version,
    )


def _transaction(value: TransactionLogValue) -> TransactionMetadata:
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise ProtocolError(f"transaction status {value.transaction_status} is not known")
    return TransactionMetadata(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in value.transaction_partitions or []
            for partition in each.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )
