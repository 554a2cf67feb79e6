"""Why the transaction coordinator does not do what it is asked."""

from penstock.errors import ErrorCode, KafkaError


class InvalidTransactionRequest(KafkaError):
    """A transactional id is needed, and it may not be empty."""

    code = ErrorCode.INVALID_REQUEST


class InvalidTransactionTimeout(KafkaError):
    """Not positive, or longer than `transaction.max.timeout.ms`."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class InvalidProducerIdMapping(KafkaError):
    """The transactional id is not known, or belongs to another producer id."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class ProducerFenced(KafkaError):
    """A newer producer has the transactional id."""

    code = ErrorCode.PRODUCER_FENCED


class ConcurrentTransactions(KafkaError):
    """The last transaction is not quite over: try again."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidTxnState(KafkaError):
    """There is no transaction that could end this way."""

    code = ErrorCode.INVALID_TXN_STATE


class TransactionAbortable(KafkaError):
    """The partition does not take part in the transaction: the producer can only abort it."""

    code = ErrorCode.TRANSACTION_ABORTABLE


class TransactionalIdNotFound(KafkaError):
    """Nobody has used this transactional id, or not for long."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
