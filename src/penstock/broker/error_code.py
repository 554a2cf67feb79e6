"""Error codes for single partitions, topics or resources in a response."""

import logging

from penstock.errors import ErrorCode, KafkaError, StorageError

logger = logging.getLogger(__name__)

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
"""Kafka's text for INVALID_REQUEST without a specific message."""

PARTITION_ERRORS = (KafkaError, StorageError)
"""The errors that a handler turns into codes by partition. Any other exception is a bug."""


def code_of(error: Exception) -> ErrorCode:
    """The error's code. A disk failure is KAFKA_STORAGE_ERROR; its directory is offline already."""
    if isinstance(error, KafkaError):
        logger.debug("refused: %s", error)
        return error.code
    assert isinstance(error, StorageError), error
    return ErrorCode.KAFKA_STORAGE_ERROR
