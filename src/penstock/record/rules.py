"""The topic settings that restrict a produced batch, and the errors for a batch outside of them."""

from dataclasses import dataclass

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError
from penstock.record.compression import Codec


class BatchTooLarge(KafkaError):
    """A batch above `max.message.bytes`; the producer splits it and sends the parts."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTimestamp(KafkaError):
    """A timestamp outside the topic's bounds, or a timestamp type that only brokers may set."""

    code = ErrorCode.INVALID_TIMESTAMP


@dataclass(frozen=True, kw_only=True)
class BatchRules:
    """The topic settings that restrict a batch, named as in the topic's config."""

    max_message_bytes: int
    log_append_time: bool = False
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = 3_600_000
    keys_required: bool = False
    codec: Codec | None = None
    """The codec that batches are recompressed with; None keeps the producer's."""
    codec_level: int | None = None

    @classmethod
    def of(cls, config: TopicConfig) -> "BatchRules":
        as_produced = config.compression_type == "producer"
        name = "none" if config.compression_type == "uncompressed" else config.compression_type
        return cls(
            max_message_bytes=config.max_message_bytes,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            keys_required="compact" in config.cleanup_policy,
            codec=None if as_produced else Codec[name.upper()],
            codec_level=None if as_produced else config.codec_level(name),
        )
