"""Formatters of the console consumer, which turn a record into a line."""

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from penstock.kafka_tools.tool import ToolError

if TYPE_CHECKING:
    from penstock.client.consume import ConsumedRecord

Formatter: TypeAlias = "Callable[[ConsumedRecord], bytes | None]"
"""Returns the bytes to print; None: print nothing."""
Deserializer: TypeAlias = Callable[[bytes], bytes]


def _numeric(code: str) -> Deserializer:
    def read(data: bytes) -> bytes:
        try:
            return str(struct.unpack(code, data)[0]).encode()
        except struct.error:
            raise ToolError(
                f"Size of data received by deserializer is not {struct.calcsize(code)}"
            ) from None

    return read


DESERIALIZERS: dict[str, Deserializer] = {
    "StringDeserializer": bytes,
    "ByteArrayDeserializer": bytes,
    "BytesDeserializer": bytes,
    "ByteBufferDeserializer": bytes,
    "UUIDDeserializer": bytes,
    "ShortDeserializer": _numeric(">h"),
    "IntegerDeserializer": _numeric(">i"),
    "LongDeserializer": _numeric(">q"),
    "FloatDeserializer": _numeric(">f"),
    "DoubleDeserializer": _numeric(">d"),
}


def deserializer(name: str | None) -> Deserializer:
    if name is None:
        return bytes
    simple = name.rpartition(".")[2]
    if simple not in DESERIALIZERS:
        known = ", ".join(DESERIALIZERS)
        raise ToolError(f"there is no deserializer {name}; known are {known}")
    return DESERIALIZERS[simple]


def default_formatter(
    properties: Mapping[str, str], *, timestamp_type: Callable[[str], str]
) -> Formatter:
    """Prints the fields that properties such as `print.key=true` select, with `key.separator`."""

    def on(name: str, otherwise: str = "false") -> bool:
        return properties.get(name, otherwise).strip().lower() == "true"

    separator = _text(properties.get("key.separator", "\t"))
    line_end = _text(properties.get("line.separator", "\n"))
    between_headers = _text(properties.get("headers.separator", ","))
    null = properties.get("null.literal", "null").encode()
    read_key = deserializer(properties.get("key.deserializer"))
    read_value = deserializer(properties.get("value.deserializer"))
    read_header = deserializer(properties.get("headers.deserializer"))
    shown = {
        name: on(f"print.{name}", "true" if name == "value" else "false")
        for name in (
            *("timestamp", "partition", "offset", "delivery"),
            *("epoch", "headers", "key", "value"),
        )
    }

    def headers(consumed: "ConsumedRecord") -> bytes:
        found = [
            name.encode(errors="surrogateescape")
            + b":"
            + (null if value is None else read_header(value))
            for name, value in consumed.record.headers
        ]
        return between_headers.join(found) if found else b"NO_HEADERS"

    def formatted(consumed: "ConsumedRecord") -> bytes:
        record, fields = consumed.record, []
        if shown["timestamp"]:
            kind = timestamp_type(consumed.partition.topic)
            fields.append(
                f"{kind}:{record.timestamp}".encode() if record.timestamp >= 0 else b"NO_TIMESTAMP"
            )
        if shown["partition"]:
            fields.append(f"Partition:{consumed.partition.partition}".encode())
        if shown["offset"]:
            fields.append(f"Offset:{record.offset}".encode())
        if shown["delivery"]:  # only members of share groups have it
            count = getattr(consumed, "delivery_count", None)
            fields.append(f"Delivery:{'NOT_PRESENT' if count is None else count}".encode())
        if shown["epoch"]:
            fields.append(b"Epoch:NOT_PRESENT")
        if shown["headers"]:
            fields.append(headers(consumed))
        if shown["key"]:
            fields.append(null if record.key is None else read_key(bytes(record.key)))
        if shown["value"]:
            fields.append(null if record.value is None else read_value(bytes(record.value)))
        return separator.join(fields) + line_end

    return formatted


def _text(given: str) -> bytes:
    return given.replace("\\t", "\t").replace("\\n", "\n").encode()


def logging_formatter(inner: Formatter) -> Formatter:
    """Prepends timestamp, key and value, as the log line of Kafka's formatter, to
    what `inner` prints.
    """

    def formatted(consumed: "ConsumedRecord") -> bytes | None:
        record = consumed.record
        key = "null" if record.key is None else bytes(record.key).decode(errors="replace")
        value = "null" if record.value is None else bytes(record.value).decode(errors="replace")
        line = f"CreateTime:{record.timestamp}, key:{key}, value:{value}\n"
        return line.encode() + (inner(consumed) or b"")

    return formatted


def no_op_formatter(_consumed: "ConsumedRecord") -> None:
    return None
