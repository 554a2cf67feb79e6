"""The error for bytes that pass the batch's CRC but are not valid records."""

from penstock.errors import ErrorCode, KafkaError


class InvalidRecord(KafkaError):
    """A batch or record that violates the format; retrying cannot help."""

    code = ErrorCode.INVALID_RECORD
