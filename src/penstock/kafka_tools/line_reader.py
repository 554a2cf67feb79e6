"""Parses key, value and headers from a line, like Kafka's LineMessageReader."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.kafka_tools.tool import ToolError

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Fields: TypeAlias = tuple[bytes | None, bytes | None, Headers]


@dataclass(slots=True)
class KafkaLineReader:
    """`parse.key` and `parse.headers` determine which fields precede the value in a line."""

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None
    line_number: int = 0

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "KafkaLineReader":
        def is_set(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        return cls(
            is_set("parse.key"),
            is_set("parse.headers"),
            is_set("ignore.error"),
            _unescaped(properties.get("key.separator", "\t")),
            _unescaped(properties.get("headers.delimiter", "\t")),
            _unescaped(properties.get("headers.separator", ",")),
            _unescaped(properties.get("headers.key.separator", ":")),
            properties.get("null.marker"),
        )

    def read(self, line: bytes) -> Fields:
        self.line_number += 1
        if not (self.parse_key or self.parse_headers or self.null_marker):
            return None, line, ()
        rest = line
        headers: bytes | None = None
        key: bytes | None = None
        if self.parse_headers:
            headers, rest = self._cut(rest, self.headers_delimiter, "headers delimiter")
        if self.parse_key:
            key, rest = self._cut(rest, self.key_separator, "key separator")
        return (
            self._field(key),
            self._field(rest),
            self._headers(headers) if self.parse_headers else (),
        )

    def _field(self, data: bytes | None) -> bytes | None:
        is_null = data is None or (
            self.null_marker is not None and data == self.null_marker.encode()
        )
        return None if is_null else data

    def _cut(self, data: bytes, separator: str, what: str) -> tuple[bytes | None, bytes]:
        before, found, after = data.partition(separator.encode())
        if found:
            return before, after
        if self.ignore_error:
            return None, data
        raise ToolError(
            f"No {what} found on line number {self.line_number}: '{data.decode(errors='replace')}'"
        )

    def _headers(self, data: bytes | None) -> Headers:
        if self._field(data) is None:
            return ()
        found: list[tuple[str, bytes | None]] = []
        for pair in (data or b"").split(self.headers_separator.encode()):
            name, separator, value = pair.partition(self.headers_key_separator.encode())
            if not separator:
                if self.ignore_error:
                    found.append((pair.decode(errors="replace"), None))
                    continue
                raise ToolError(
                    f"No header key separator found in pair '{pair.decode(errors='replace')}' on "
                    f"line number {self.line_number}"
                )
            if self._field(name) is None:
                raise ToolError(
                    "Header keys should not be equal to the null marker "
                    f"'{self.null_marker}' as they can't be null"
                )
            found.append((name.decode(errors="replace"), self._field(value)))
        return found


def _unescaped(text: str) -> str:
    r"""Replace `\t` and `\n` in an argument, which the shell leaves as they are."""
    return text.replace("\\t", "\t").replace("\\n", "\n")
