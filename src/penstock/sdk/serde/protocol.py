"""The contracts. Both methods must be safe to call from several threads."""

from typing import Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Serializer(Protocol[T_contra]):
    """Makes bytes of a value; what it raises reaches the caller of `send`."""

    def serialize(self, value: T_contra, /) -> bytes: ...


class Deserializer(Protocol[T_co]):
    """Makes a value of bytes; what it raises makes the record a poison record."""

    def deserialize(self, data: bytes, /) -> T_co: ...


class Serde(Serializer[T], Deserializer[T], Protocol[T]):
    """Both directions."""
