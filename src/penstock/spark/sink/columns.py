"""The columns that a sink reads, as Spark's `kafka` format names and types them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.errors import ConfigError

_BYTES: Final = ("binary", "string")
_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
"""Types of the columns that the sink reads; it ignores others, as the `kafka` format does."""


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """Positions of the columns that make a record; None for a missing one."""

    value: int
    key: int | None = None
    headers: int | None = None
    topic: int | None = None
    partition: int | None = None
    timestamp: int | None = None
    order: tuple[int, ...] = ()
    """A task sorts its rows by these columns; empty: rows stay as they come."""


def check_distinct(names: Sequence[str]) -> None:
    """Spark allows several columns of one name, as after a join."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(
                f"the rows have {count} columns called {name}: drop or rename all but one"
            )


def sink_columns(
    types: Mapping[str, str],
    *,
    topic: str | None,
    with_timestamps: bool = False,
    order_by: tuple[str, ...] | None = None,
    encodes_value: bool = False,
) -> SinkColumns:
    """The sink's columns in a schema, given as simple types by name, in order.

    `topic` is the option of that name, which wins over the column. `order_by` are the columns of
    option orderBy; None means source partition and offset, if the rows still have them. The sink
    encodes a value that is a struct by option valueFormat.
    """
    at = {name: position for position, name in enumerate(types)}
    if "value" not in at:
        raise ConfigError("the rows have no column value: give that name to what is written")
    if topic is None and "topic" not in at:
        raise ConfigError("option topic is missing, and the rows have no column topic")
    wanted = {"key", "value", "headers", "partition"}
    if topic is None:
        wanted.add("topic")
    if with_timestamps:
        wanted.add("timestamp")
        if "timestamp" not in at:
            raise ConfigError("option includeTimestamp: the rows have no column timestamp")
    if encodes_value:
        wanted.discard("value")
        if not types["value"].startswith("struct<"):
            raise ConfigError(
                f"column value is {types['value']}: option valueFormat needs a struct, as by "
                "struct(*)"
            )
    for name in sorted(wanted & at.keys()):
        if types[name] not in _TYPES[name]:
            raise ConfigError(
                f"column {name} is {types[name]}: it must be {' or '.join(_TYPES[name])}"
            )
    return SinkColumns(
        **{name: position for name, position in at.items() if name in {*wanted, "value"}},
        order=_order(at, order_by),
    )


def _order(at: Mapping[str, int], order_by: tuple[str, ...] | None) -> tuple[int, ...]:
    if order_by is None:
        if "offset" not in at:
            return ()
        order_by = ("partition", "offset") if "partition" in at else ("offset",)
    for name in order_by:
        if name not in at:
            raise ConfigError(f"option orderBy: the rows have no column {name}")
    return tuple(at[name] for name in order_by)
