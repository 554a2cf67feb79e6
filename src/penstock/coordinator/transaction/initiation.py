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
    known = None if transaction.producer_epoch == NONE else asked.known
    if known is not None:
        _check_id(transaction, known)
    if transaction.state.is_decided:
        raise ConcurrentTransactions("participants are being told")
    if known is not None:
        _check_epoch(transaction, known)
    if transaction.state is State.ONGOING:
        return transaction.fenced(now_ms)
    return transaction.moved(
        State.EMPTY,
        now_ms,
        timeout_ms=asked.timeout_ms,
        partitions=frozenset(),
        start_ms=NONE,
        **_next_producer(transaction, asked, new_producer_id),
    )


def _next_producer(
    transaction: Transaction, asked: Initiating, new_producer_id: int
) -> dict[str, object]:
    """The producer id and epoch to give, and the epoch before if its owner may come back."""
    current = transaction.producer_epoch
    if asked.known is not None and _is_repeated(transaction, asked.known):
        return {}  # the answer was lost: it is given again
    last_epoch = NONE if asked.known is None else current
    if not transaction.is_epoch_exhausted:
        return {"producer_epoch": current + 1, "last_producer_epoch": last_epoch}
    return {
        "previous_producer_id": transaction.producer_id,
        "producer_id": new_producer_id,
        "producer_epoch": 0,
        "last_producer_epoch": last_epoch,
    }


def _check_id(transaction: Transaction, known: Producer) -> None:
    """Refuse an id that is not the current one.

    The id before may have been given up because its epochs had run out, unheard by its owner.
    """
    if known.id == transaction.producer_id:
        return
    if known.id != transaction.previous_producer_id or known.epoch < LAST_EPOCH - 1:
        raise ProducerFenced(f"producer {known.id}, and {transaction.producer_id} is current")


def _check_epoch(transaction: Transaction, known: Producer) -> None:
    """Refuse a producer that another one has replaced.

    Whoever has a transaction open has heard of the current epoch: nobody can ask for it again.
    """
    if known == Producer(transaction.producer_id, transaction.producer_epoch):
        return
    if transaction.state is State.ONGOING or not _is_repeated(transaction, known):
        raise ProducerFenced(f"{known}, and {transaction.producer} is current")


def _is_repeated(transaction: Transaction, known: Producer) -> bool:
    """The producer was given the current epoch, and may not have heard of it (KIP-360).

    Only the last producer epoch can tell: when another producer took the id over, there is none.
    """
    last_epoch = transaction.last_producer_epoch
    if last_epoch == NONE or known.epoch != last_epoch:
        return False
    if transaction.producer_epoch == last_epoch + 1:
        return known.id == transaction.producer_id
    return transaction.producer_epoch == 0 and known.id == transaction.previous_producer_id
