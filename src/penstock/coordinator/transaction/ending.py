"""EndTxn: a producer ends its transaction, or retries because the response was lost."""

import msgspec

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    LAST_EPOCH,
    NONE,
    TransactionMetadata,
)

_END = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}
_OPEN = {TransactionState.EMPTY, TransactionState.ONGOING}
_DECISION = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}


class TransactionEnd(msgspec.Struct, frozen=True):
    """A producer's request to commit or abort its transaction."""

    producer: ProducerIdAndEpoch
    committed: bool
    client_version: int = 0


def needs_producer_id(transaction: TransactionMetadata | None, request: TransactionEnd) -> bool:
    return (
        transaction is not None
        and request.client_version >= EPOCH_BUMP_VERSION
        and transaction.is_epoch_exhausted
    )


def ended(
    transaction: TransactionMetadata, request: TransactionEnd, new_producer_id: int, now_ms: int
) -> TransactionMetadata | None:
    """The transaction, decided; None if it has already ended in this way."""
    state, bumps_epoch = transaction.state, request.client_version >= EPOCH_BUMP_VERSION
    is_retry = bumps_epoch and _is_retry(transaction, request.producer)
    _check(transaction, request.producer, is_retry=is_retry)
    if state.is_decided:
        if state is _DECISION[request.committed] or (bumps_epoch and not is_retry):
            raise ConcurrentTransactions("the transaction's markers are being written")
        raise InvalidTxnState(f"the transaction is {state.value}, which is final")
    if state is TransactionState.ONGOING:
        return _decided(transaction, request, new_producer_id, now_ms)
    if state is _END[request.committed] and (is_retry or not bumps_epoch):
        return None
    if bumps_epoch and not request.committed and not is_retry:
        # All its partitions may have been refused. The abort bumps the epoch even so.
        return _decided(transaction, request, new_producer_id, now_ms)
    raise InvalidTxnState(f"the transaction is {state.value}")


def _is_retry(transaction: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Whether the producer still has the epoch of its last transaction: it missed the response.

    False once the next transaction is open: a late request must not end that one.
    """
    if transaction.client_version < EPOCH_BUMP_VERSION or transaction.state in _OPEN:
        return False
    if producer.id == transaction.producer_id:
        return transaction.producer_epoch == producer.epoch + 1
    return producer == ProducerIdAndEpoch(transaction.previous_producer_id, LAST_EPOCH - 1) and (
        transaction.producer_epoch == 0
    )


def _check(
    transaction: TransactionMetadata, producer: ProducerIdAndEpoch, *, is_retry: bool
) -> None:
    if is_retry or producer == transaction.producer:  # which may have the next id already
        return
    if producer.id != transaction.producer_id:
        raise InvalidProducerIdMapping(
            f"the producer is {transaction.producer_id}, not {producer.id}"
        )
    if producer.epoch != transaction.producer_epoch:
        raise ProducerFenced(
            f"epoch {producer.epoch} is not the current {transaction.producer_epoch}"
        )


def _decided(
    transaction: TransactionMetadata, request: TransactionEnd, new_producer_id: int, now_ms: int
) -> TransactionMetadata:
    changes: dict[str, object] = {"client_version": request.client_version}
    if transaction.state is not TransactionState.ONGOING:
        changes |= {"start_ms": now_ms, "partitions": frozenset()}
    if request.client_version >= EPOCH_BUMP_VERSION:
        changes |= {
            "producer_epoch": transaction.producer_epoch + 1,
            "last_producer_epoch": transaction.producer_epoch,
            "next_producer_id": new_producer_id if transaction.is_epoch_exhausted else NONE,
        }
    return transaction.transitioned(_DECISION[request.committed], now_ms, **changes)
