"""Turns librdkafka's messages into records."""

from collections.abc import Callable
from typing import Any, Generic

from confluent_kafka import KafkaError, Message

from penstock.sdk.errors import ConsumerFailed, DeserializationFailed
from penstock.sdk.record import K, Record, V
from penstock.sdk.serde.protocol import Deserializer


class RecordReader(Generic[K, V]):
    """Deserializes; null keys and values stay None."""

    def __init__(self, key: Deserializer[K] | None, value: Deserializer[V] | None) -> None:
        self._key: Callable[[bytes], Any] | None = None if key is None else key.deserialize
        self._value: Callable[[bytes], Any] | None = None if value is None else value.deserialize
        self.read: Callable[[Message], Record[K, V]] = self._read
        """Raises the deserializer's own error; `failure` turns it into an SDK error."""
        if key is None and value is not None:
            self.read = _reading_values(value.deserialize)

    def _read(self, message: Message) -> Record[K, V]:
        key: Any = message.key()
        value: Any = message.value()
        if self._value is not None and value is not None:
            value = self._value(value)
        if self._key is not None and key is not None:
            key = self._key(key)
        return Record(message, key, value)

    def failure(self, message: Message, error: Exception) -> DeserializationFailed:
        """The SDK error for what `read` raised."""
        part, data = "value", message.value() or b""
        key = message.key()
        if self._key is not None and key is not None:
            try:
                self._key(key)
            except Exception:  # noqa: BLE001 - the user's deserializer
                part, data = "key", key
        failed = DeserializationFailed(*raw_record(message).id, part, data, error)
        failed.__cause__ = error
        return failed


def _reading_values(deserialize: Callable[[bytes], Any]) -> Callable[[Message], Record[Any, Any]]:
    """A reader for the commonest case without branches, because it runs for each record."""

    def read(message: Message) -> Record[Any, Any]:
        value = message.value()
        return Record(message, message.key(), None if value is None else deserialize(value))

    return read


def raw_record(message: Message) -> Record[bytes, bytes]:
    return Record(message, message.key(), message.value())


def check_error(error: KafkaError) -> None:
    """Raise errors that end a consumer; librdkafka recovers from the others by itself."""
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's name
        return
    if error.fatal() or (not error.retriable() and error.code() not in _PASSING):
        raise ConsumerFailed(f"{error.name()}: {error.str()}")


_PASSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,  # the topic may be created later
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._MAX_POLL_EXCEEDED,  # noqa: SLF001 - it rejoins
    KafkaError._RESOLVE,  # noqa: SLF001
}
