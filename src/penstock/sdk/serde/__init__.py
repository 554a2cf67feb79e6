"""Serializers and deserializers: values to bytes and back.

A custom serializer is a class with one method, and so is a deserializer:

    class Celsius:
        def serialize(self, value: float) -> bytes:
            return b"%.1f" % value

Null keys and values never reach them: a tombstone stays one.
"""

from penstock.sdk.serde.protocol import Deserializer, Serde, Serializer
from penstock.sdk.serde.simple import RAW, STRING, Json, MessagePack

__all__ = ["RAW", "STRING", "Deserializer", "Json", "MessagePack", "Serde", "Serializer"]
