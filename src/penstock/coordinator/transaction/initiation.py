"""A producer takes a transactional id over: which producer id and epoch it gets (KIP-98, 360)."""

import msgspec

from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import ConcurrentTransactions, ProducerFenced
from penstock.coordinator.transaction.state import State
from penstock.coordinator.transaction.transaction import LAST_EPOCH, NONE, Transaction


class Initiating(msgspec.Struct, frozen=True):
    """What a producer asks for; one that goes on after an error says who it was."""

    timeout_ms: int
    known: Producer | None = None


def needs_producer_id(transaction: Transaction | None) -> bool:
    return transaction is None or transaction.is_epoch_exhausted


def initiated(
    transaction: Transaction | None, asked: Initiating, new_producer_id: int, now_ms: int
) -> Transaction:
    """The id without a transaction, in an epoch that shuts out all earlier producers.

    An open transaction is aborted first: then the producer has to ask again.
    """
    if transaction is None:
        transaction = Transaction(producer_id=new_producer_id, timeout_ms=asked.timeout_ms)
    _check(transaction, asked.known)
    if transaction.state.is_decided:
        raise ConcurrentTransactions("participants are being told")
    if transaction.state is State.ONGOING:
        return transaction.fenced(now_ms)
    rest: dict[str, object] = {
        "timeout_ms": asked.timeout_ms,
        "partitions": frozenset(),
        "start_ms": NONE,
    }
    if transaction.is_epoch_exhausted:
        last_epoch = NONE if asked.known is None else transaction.producer_epoch
        return transaction.moved(
            State.EMPTY,
            now_ms,
            previous_producer_id=transaction.producer_id,
            producer_id=new_producer_id,
            producer_epoch=0,
            last_producer_epoch=last_epoch,
            **rest,
        )
    epoch, last_epoch = _next_epoch(transaction, asked.known)
    return transaction.moved(
        State.EMPTY, now_ms, producer_epoch=epoch, last_producer_epoch=last_epoch, **rest
    )


def _check(transaction: Transaction, known: Producer | None) -> None:
    """Refuse a producer that another one has replaced."""
    if known is None or transaction.producer_epoch == NONE:
        return
    if known.id == transaction.producer_id:
        if transaction.state is State.ONGOING and known.epoch != transaction.producer_epoch:
            raise ProducerFenced(f"epoch {known.epoch}, {transaction.producer_epoch} is current")
        return
    # It was given a new id when its epochs had run out, and did not hear of it.
    if known.id != transaction.previous_producer_id or known.epoch < LAST_EPOCH - 1:
        raise ProducerFenced(f"producer {known.id}, and {transaction.producer_id} is current")


def _next_epoch(transaction: Transaction, known: Producer | None) -> tuple[int, int]:
    """The epoch to give, and the one before it if its owner may come back."""
    current = transaction.producer_epoch
    if known is None:
        return current + 1, NONE
    if current == NONE or known == Producer(transaction.producer_id, current):
        return current + 1, current
    if known.id == transaction.previous_producer_id or known.epoch == (
        transaction.last_producer_epoch
    ):
        return current, transaction.last_producer_epoch  # asked again: the answer was lost
    raise ProducerFenced(f"epoch {known.epoch}, and {current} is current")
