"""Bytes, text, JSON and MessagePack."""

from typing import Final, Generic, TypeVar, overload

import msgspec

T = TypeVar("T")


class Raw:
    """Bytes as they are. Clients skip it: it costs nothing."""

    def serialize(self, value: bytes, /) -> bytes:
        return value

    def deserialize(self, data: bytes, /) -> bytes:
        return data


class Text:
    """UTF-8."""

    def serialize(self, value: str, /) -> bytes:
        return value.encode()

    def deserialize(self, data: bytes, /) -> str:
        return data.decode()


RAW: Final = Raw()
STRING: Final = Text()


class Json(Generic[T]):
    """JSON. With a type (dataclass, TypedDict, msgspec Struct ...) values are checked when read."""

    @overload
    def __init__(self: "Json[object]") -> None: ...
    @overload
    def __init__(self, type_: type[T]) -> None: ...
    def __init__(self, type_: object = None) -> None:
        self._encoder = msgspec.json.Encoder()
        self._decoder: msgspec.json.Decoder[T] = (
            msgspec.json.Decoder() if type_ is None else msgspec.json.Decoder(type_)
        )
        self.serialize = self._encoder.encode  # bound here: saves a call per record
        self.deserialize = self._decoder.decode


class MessagePack(Generic[T]):
    """MessagePack; a type has the same effect as with `Json`."""

    @overload
    def __init__(self: "MessagePack[object]") -> None: ...
    @overload
    def __init__(self, type_: type[T]) -> None: ...
    def __init__(self, type_: object = None) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[T] = (
            msgspec.msgpack.Decoder() if type_ is None else msgspec.msgpack.Decoder(type_)
        )
        self.serialize = self._encoder.encode
        self.deserialize = self._decoder.decode
