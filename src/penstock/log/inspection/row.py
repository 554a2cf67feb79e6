"""One line of a dump: named values, spelled as Kafka's own tool spells them."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

Value: TypeAlias = int | bool | str | list[str] | None

_OPTIONAL_LONGS = {"deleteHorizonMs", "currentTxnFirstOffset"}


class RowKind(StrEnum):
    """What a row is about."""

    BATCH = "batch"
    RECORD = "record"
    ENTRY = "entry"
    NOTE = "note"
    PROBLEM = "problem"


class Row(msgspec.Struct, frozen=True):
    """The values of one batch, record or entry, in the order of their names' appearance."""

    kind: RowKind
    values: dict[str, Value]

    @property
    def text(self) -> str:
        spelled = " ".join(
            f"{name}: {_spelled(name, value)}" for name, value in self.values.items()
        )
        match self.kind:
            case RowKind.RECORD:
                return f"| {spelled}"
            case RowKind.NOTE:
                return str(self.values["note"])
            case RowKind.PROBLEM:
                return f"! {self.values['problem']}"
            case RowKind.BATCH | RowKind.ENTRY:
                return spelled


def note(text: str) -> Row:
    return Row(RowKind.NOTE, {"note": text})


def problem(text: str) -> Row:
    return Row(RowKind.PROBLEM, {"problem": text})


def _spelled(name: str, value: Value) -> str:
    if name in _OPTIONAL_LONGS:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{','.join(value)}]"
    return str(value)
