"""InitProducerId: which producer id and epoch a transactional producer gets (KIP-98, KIP-360)."""

import msgspec

from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.coordinator.transaction.errors import ConcurrentTransactions, ProducerFenced
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import (
    LAST_EPOCH,
    NONE,
    TransactionMetadata,
)


class TransactionInit(msgspec.Struct, frozen=True):
    """A producer's request. `known` is its identity so far, if it goes on after an error."""

    timeout_ms: int
    known: ProducerIdAndEpoch | None = None


def needs_producer_id(transaction: TransactionMetadata | None) -> bool:
    return transaction is None or transaction.is_epoch_exhausted


def initiated(
    transaction: TransactionMetadata | None,
    request: TransactionInit,
    new_producer_id: int,
    now_ms: int,
) -> TransactionMetadata:
    """The transactional id without a transaction, in an epoch that fences all earlier producers.

    An open transaction is aborted first: the producer then has to retry.
    """
    if transaction is None:
        transaction = TransactionMetadata(
            producer_id=new_producer_id, timeout_ms=request.timeout_ms
        )
    known = None if transaction.producer_epoch == NONE else request.known
    if known is not None:
        _check_id(transaction, known)
    if transaction.state.is_decided:
        raise ConcurrentTransactions("the transaction's markers are being written")
    if known is not None:
        _check_epoch(transaction, known)
    if transaction.state is TransactionState.ONGOING:
        return transaction.fenced(now_ms)
    return transaction.transitioned(
        TransactionState.EMPTY,
        now_ms,
        timeout_ms=request.timeout_ms,
        partitions=frozenset(),
        start_ms=NONE,
        **_next_producer(transaction, request, new_producer_id),
    )


def _next_producer(
    transaction: TransactionMetadata, request: TransactionInit, new_producer_id: int
) -> dict[str, object]:
    """The new producer id and epoch, and the previous epoch if its owner may retry."""
    current = transaction.producer_epoch
    if request.known is not None and _is_retry(transaction, request.known):
        return {}  # the response was lost: repeat it
    last_epoch = NONE if request.known is None else current
    if not transaction.is_epoch_exhausted:
        return {"producer_epoch": current + 1, "last_producer_epoch": last_epoch}
    return {
        "previous_producer_id": transaction.producer_id,
        "producer_id": new_producer_id,
        "producer_epoch": 0,
        "last_producer_epoch": last_epoch,
    }


def _check_id(transaction: TransactionMetadata, known: ProducerIdAndEpoch) -> None:
    """Refuse a producer id that is not the current one, nor the one that follows it once markers
    are written.

    The previous id is accepted in its last epoch: epochs ran out, and its owner may have missed
    the response with the new id.
    """
    if known.id in {transaction.producer_id, transaction.producer.id}:
        return
    if known.id != transaction.previous_producer_id or known.epoch < LAST_EPOCH - 1:
        raise ProducerFenced(f"producer id {known.id} is not the current {transaction.producer_id}")


def _check_epoch(transaction: TransactionMetadata, known: ProducerIdAndEpoch) -> None:
    """Refuse a producer that another one has replaced.

    While a transaction is open its producer knows the current epoch, so no retry is accepted.
    """
    if known == ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch):
        return
    if transaction.state is TransactionState.ONGOING or not _is_retry(transaction, known):
        raise ProducerFenced(f"{known} is not the current {transaction.producer}")


def _is_retry(transaction: TransactionMetadata, known: ProducerIdAndEpoch) -> bool:
    """Whether the producer was given the current epoch and missed the response (KIP-360).

    The last producer epoch tells; it is unset after another producer took the id over.
    """
    last_epoch = transaction.last_producer_epoch
    if last_epoch == NONE or known.epoch != last_epoch:
        return False
    if transaction.producer_epoch == last_epoch + 1:
        return known.id == transaction.producer_id
    return transaction.producer_epoch == 0 and known.id == transaction.previous_producer_id
