"""Confluent's serializers, which find their schemas in a registry, for the SDK's clients.

    from confluent_kafka.schema_registry.avro import AvroSerializer

    value = Registered("orders", AvroSerializer(registry, schema), AvroDeserializer(registry))
    Producer(config, value=value)

They need the topic, since a schema's subject is named after it. So each topic needs its own
`Registered`, and keys another than values.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from confluent_kafka.serialization import MessageField, SerializationContext

Convert: TypeAlias = Callable[[Any, SerializationContext], Any]


class Registered:
    """A serializer of Confluent's, a deserializer, or both."""

    def __init__(
        self,
        topic: str,
        serializer: Convert | None = None,
        deserializer: Convert | None = None,
        *,
        is_key: bool = False,
    ) -> None:
        self._serializer, self._deserializer = serializer, deserializer
        field = MessageField.KEY if is_key else MessageField.VALUE
        self._context = SerializationContext(topic, field)

    def serialize(self, value: object, /) -> bytes:
        if self._serializer is None:
            raise TypeError("it was made without a serializer")
        data: bytes = self._serializer(value, self._context)
        return data

    def deserialize(self, data: bytes, /) -> Any:
        if self._deserializer is None:
            raise TypeError("it was made without a deserializer")
        return self._deserializer(data, self._context)
