"""The errors of produce requests, and the response for a refused batch."""

from typing import Final

from penstock.broker.error_code import code_of
from penstock.errors import ErrorCode, KafkaError, StorageError
from penstock.record.batch import CorruptBatch
from penstock.record.rejected import RejectedRecords
from penstock.record.rules import BatchTooLarge
from penstock.record.validate import NotOneBatch
from penstock.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
)


class TransactionalIdMissing(KafkaError):
    """A transactional batch in a request that does not name its transaction."""

    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class InvalidRequiredAcks(KafkaError):
    """`acks` is not 0, 1 or -1."""

    code = ErrorCode.INVALID_REQUIRED_ACKS


class UnsupportedCodec(KafkaError):
    """zstd needs Produce v7, so that only consumers that support it receive it (KIP-110)."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class CorruptRecords(KafkaError):
    """The request has no records for a partition it names."""

    code = ErrorCode.CORRUPT_MESSAGE


UNREADABLE: Final = (
    CorruptBatch,
    CorruptRecords,
    NotOneBatch,
    BatchTooLarge,
    UnsupportedCodec,
    TransactionalIdMissing,
    StorageError,
)
"""Errors from before the batch was read: the response then has no log start offset."""


def refused(index: int, error: Exception, log_start_offset: int) -> PartitionProduceResponse:
    """The response for a batch that was not appended."""
    unread = isinstance(error, UNREADABLE)
    at_fault = error.errors if isinstance(error, RejectedRecords) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=code_of(error),
        base_offset=-1,
        log_start_offset=-1 if unread else log_start_offset,
        error_message=str(error),
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=each.batch_index, batch_index_error_message=each.message
            )
            for each in at_fault
        ],
    )
