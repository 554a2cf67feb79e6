"""A producer ends its transaction, or asks again because it did not hear that it has ended."""

import msgspec

from penstock.coordinator.storage import Producer
from penstock.coordinator.transaction.refusal import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
)
from penstock.coordinator.transaction.state import State
from penstock.coordinator.transaction.transaction import (
    EPOCH_BUMPS,
    LAST_EPOCH,
    NONE,
    Transaction,
)

_END = {True: State.COMPLETE_COMMIT, False: State.COMPLETE_ABORT}
_OPEN = {State.EMPTY, State.ONGOING}
_DECISION = {True: State.PREPARE_COMMIT, False: State.PREPARE_ABORT}


class Ending(msgspec.Struct, frozen=True):
    """How a producer wants its transaction to end."""

    producer: Producer
    committed: bool
    client_version: int = 0


def needs_producer_id(transaction: Transaction | None, asked: Ending) -> bool:
    return (
        transaction is not None
        and asked.client_version >= EPOCH_BUMPS
        and transaction.is_epoch_exhausted
    )


def ended(
    transaction: Transaction, asked: Ending, new_producer_id: int, now_ms: int
) -> Transaction | None:
    """The transaction, decided; None if it has ended so already."""
    state, bumps = transaction.state, asked.client_version >= EPOCH_BUMPS
    again = bumps and _is_repeated(transaction, asked.producer)
    _check(transaction, asked.producer, again=again)
    if state.is_decided:
        if state is _DECISION[asked.committed] or (bumps and not again):
            raise ConcurrentTransactions("participants are being told")
        raise InvalidTxnState(f"{state.value} is decided")
    if state is State.ONGOING:
        return _decided(transaction, asked, new_producer_id, now_ms)
    if state is _END[asked.committed] and (again or not bumps):
        return None
    if bumps and not asked.committed and not again:
        # Its partitions may have been refused: the abort raises the epoch all the same.
        return _decided(transaction, asked, new_producer_id, now_ms)
    raise InvalidTxnState(f"the transaction is {state.value}")


def _is_repeated(transaction: Transaction, producer: Producer) -> bool:
    """The producer has the epoch that its last transaction had before it ended.

    Once the next one is open it does not matter any more: a late request may not end that one.
    """
    if transaction.client_version < EPOCH_BUMPS or transaction.state in _OPEN:
        return False
    if producer.id == transaction.producer_id:
        return transaction.producer_epoch == producer.epoch + 1
    return producer == Producer(transaction.previous_producer_id, LAST_EPOCH - 1) and (
        transaction.producer_epoch == 0
    )


def _check(transaction: Transaction, producer: Producer, *, again: bool) -> None:
    if again:
        return
    if producer.id != transaction.producer_id:
        raise InvalidProducerIdMapping(
            f"the producer is {transaction.producer_id}, not {producer.id}"
        )
    if producer.epoch != transaction.producer_epoch:
        raise ProducerFenced(f"epoch {producer.epoch}, and {transaction.producer_epoch} is current")


def _decided(
    transaction: Transaction, asked: Ending, new_producer_id: int, now_ms: int
) -> Transaction:
    changes: dict[str, object] = {"client_version": asked.client_version}
    if transaction.state is not State.ONGOING:
        changes |= {"start_ms": now_ms, "partitions": frozenset()}
    if asked.client_version >= EPOCH_BUMPS:
        changes |= {
            "producer_epoch": transaction.producer_epoch + 1,
            "last_producer_epoch": transaction.producer_epoch,
            "next_producer_id": new_producer_id if transaction.is_epoch_exhausted else NONE,
        }
    return transaction.moved(_DECISION[asked.committed], now_ms, **changes)
