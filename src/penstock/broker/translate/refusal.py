"""Errors of one partition, topic or resource, as the code that its response carries."""

import logging

from penstock.errors import ErrorCode, KafkaError, StorageError

logger = logging.getLogger(__name__)

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the "
    "message was sent to an incompatible broker. See the broker logs for more details."
)
"""Kafka's words for INVALID_REQUEST where it has no others."""

Refusal = (KafkaError, StorageError)
"""What a handler catches around each partition: all else is a bug."""


def code_of(error: Exception) -> ErrorCode:
    """The code for a refusal; a failing disk is told as such, and its directory is offline."""
    if isinstance(error, KafkaError):
        logger.debug("refused: %s", error)
        return error.code
    assert isinstance(error, StorageError), error
    return ErrorCode.KAFKA_STORAGE_ERROR
