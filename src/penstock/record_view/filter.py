"""Selects records by an expression in CEL, Google's Common Expression Language.

CEL has no loops, no I/O and no access to Python, and its regular expressions take linear time. The
Rust implementation took 79 µs per record, cel-python 408. It copies its input, so it gets only the
variables and fields that the expression uses.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.decoded import Decode
from penstock.record_view.extra import library
from penstock.types import TopicPartition

UNDEFINED: Final = "Undefined variable"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NAMES: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_ms",
    "key",
    "value",
    "headers",
)


@dataclass
class RecordFilter:
    """Made by `record_filter`; `failures` counts records for which the expression failed."""

    expression: str
    _program: Any
    _decode_key: Decode
    _decode_value: Decode
    _setting: str
    _needs: frozenset[str]
    """The names out of `NAMES` that the expression uses."""
    _fields: frozenset[str] | None
    """The fields of an object value that the expression uses; None: all."""
    failures: int = 0
    first_failure: str = ""

    def matches(self, partition: TopicPartition, record: Record) -> bool:
        """False also if the expression fails on the record, for example for lack of a field."""
        try:
            found = self._program.execute(self._variables(partition, record))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001  whatever an expression meets in any value
            if str(error).startswith(UNDEFINED):
                raise ConfigError(
                    f"{self._setting} {self.expression!r}: {str(error).partition('. ')[0]}; "
                    f"there are {', '.join(NAMES)}"
                ) from None
            self.failures += 1
            self.first_failure = self.first_failure or _failure(partition, record, error)
            return False
        if not isinstance(found, bool):
            kind = type(found).__name__
            raise ConfigError(
                f"{self._setting} {self.expression!r} is a {kind}, must be true or false"
            )
        return found

    def _variables(self, partition: TopicPartition, record: Record) -> dict[str, Any]:
        needs = self._needs
        found: dict[str, Any] = {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
        }
        if "timestamp" in needs:
            found["timestamp"] = EPOCH + timedelta(milliseconds=max(0, record.timestamp))
        if "key" in needs:
            found["key"] = None if record.key is None else self._decode_key(record.key).value
        if "value" in needs:
            value = record.value
            found["value"] = (
                None if value is None else self._needed(self._decode_value(value).value)
            )
        if "headers" in needs:
            found["headers"] = {
                name: None if value is None else value.decode(errors="replace")
                for name, value in record.headers
            }
        return found

    def _needed(self, value: Any) -> Any:
        if self._fields is None or not isinstance(value, dict):
            return value
        return {name: value[name] for name in self._fields if name in value}


def _fields_of_value(expression: str) -> frozenset[str] | None:
    """The fields that an expression uses as `value.field`; None if it uses the value otherwise."""
    uses = re.findall(r"\bvalue\b(?:\s*\.\s*([A-Za-z_]\w*)\b(?!\s*\())?", expression)
    return None if "" in uses else frozenset(uses)


def _failure(partition: TopicPartition, record: Record, error: Exception) -> str:
    """The first sentence of the library's error; a missing name comes as a KeyError."""
    reason = str(error).partition(". ")[0].partition(":")[0]
    if isinstance(error, KeyError):
        reason = f"there is no {reason}"
    return f"{partition} at {record.offset}: {reason}"


def record_filter(
    expression: str, decode_key: Decode, decode_value: Decode, setting: str = "--filter"
) -> RecordFilter:
    """Compile the expression; `ConfigError`, which names the setting, if it is wrong."""
    cel = library("cel", setting)
    try:
        program = cel.compile(expression)
    except Exception as error:  # noqa: BLE001  the library's own errors
        reason = str(error).strip().partition("\n")[0].rpartition("ERROR: ")[2][:200]
        raise ConfigError(f"{setting} {expression!r} is not CEL: {reason}") from None
    needs = frozenset(each for each in NAMES if re.search(rf"\b{each}\b", expression))
    return RecordFilter(
        expression, program, decode_key, decode_value, setting, needs, _fields_of_value(expression)
    )
