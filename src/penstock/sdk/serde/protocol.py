"""The contracts of serializers and deserializers, whose methods must be thread-safe."""

from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Serializer(Protocol[T_contra]):
    """Turns a value into bytes; what it raises reaches the caller of `send`."""

    def serialize(self, value: T_contra, /) -> bytes: ...


class Deserializer(Protocol[T_co]):
    """Turns bytes into a value; what it raises makes the record a poison record."""

    def deserialize(self, data: bytes, /) -> T_co: ...


class Serde(Serializer[T], Deserializer[T], Protocol[T]):
    """Both directions."""
