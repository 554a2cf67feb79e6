"""Errors that the transaction coordinator answers with."""

from penstock.errors import ErrorCode, KafkaError


class InvalidTransactionRequest(KafkaError):
    """The transactional id is empty."""

    code = ErrorCode.INVALID_REQUEST


class InvalidTransactionTimeout(KafkaError):
    """The timeout is not positive, or exceeds `transaction.max.timeout.ms`."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class InvalidProducerIdMapping(KafkaError):
    """The transactional id is unknown, or belongs to another producer id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class ProducerFenced(KafkaError):
    """A newer producer has the transactional id."""

    code = ErrorCode.PRODUCER_FENCED


class ConcurrentTransactions(KafkaError):
    """The previous transaction is not complete yet: retry."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidTxnState(KafkaError):
    """The transaction's state does not allow it to end this way."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionAbortable(KafkaError):
    """The partition is not part of the transaction, which the producer can only abort."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionalIdNotFound(KafkaError):
    """The transactional id has never been used, or has expired."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
