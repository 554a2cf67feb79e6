"""The refusal of bytes that pass the batch's CRC and still are no records."""

from penstock.errors import ErrorCode, KafkaError


class InvalidRecord(KafkaError):
    """A batch or record that breaks the format's rules; sending it again cannot help."""

    code = ErrorCode.INVALID_RECORD
