"""Protobuf without a registry: the bare message, as `SerializeToString` returns it."""

from typing import Any, Generic, Protocol, TypeVar


class ProtobufMessage(Protocol):
    """The methods of generated message classes that `Protobuf` calls."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - Protobuf's name

    @classmethod
    def FromString(cls, data: bytes) -> Any: ...  # noqa: N802


M = TypeVar("M", bound=ProtobufMessage)


class Protobuf(Generic[M]):
    """Messages of one generated class. Unknown fields are kept, as Protobuf does."""

    def __init__(self, message: type[M]) -> None:
        self._message = message

    def serialize(self, value: M, /) -> bytes:
        if not isinstance(value, self._message):
            raise TypeError(f"{type(value).__name__} is no {self._message.__name__}")
        return value.SerializeToString()

    def deserialize(self, data: bytes, /) -> M:
        message: M = self._message.FromString(data)
        return message
