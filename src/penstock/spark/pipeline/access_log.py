"""Parses lines of web servers: the common and combined log formats of Apache and nginx."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

LINE: Final = (
    r"^(\S+) \S+ (\S+) \[([^\]]+)\] "  # client, identity, user, time
    r'"(?:(\S+) (\S+)(?: (\S+))?|[^"]*)" (\d{3}) (\d+|-)'  # request, status, bytes
    r'(?: "((?:[^"\\]++|\\.)*+)" "((?:[^"\\]++|\\.)*+)")?'  # referer, agent: combined only
    r"(?: (\d+\.\d+))?.*$"  # nginx's $request_time, if appended
)
TIME: Final = "dd/MMM/yyyy:HH:mm:ss Z"
_KINDS: Final = {
    "client": "string",
    "user": "string",
    "at": "timestamp",
    "method": "string",
    "path": "string",
    "protocol": "string",
    "status": "int",
    "bytes": "bigint",
    "referer": "string",
    "agent": "string",
    "seconds": "double",
}
"""The groups of `LINE` in order, with their types."""
_BETWEEN: Final = "\x01"
_PARTS: Final = _BETWEEN.join(f"${number}" for number in range(1, len(_KINDS) + 1))


def access_log_fields(line: Column) -> Column:
    """A struct. A field that is missing or `-` is null; if the line does not match, all are null.

    The expression is matched once for all fields: a line that does not match stays in one part.
    """
    parts = F.split(F.regexp_replace(line, LINE, _PARTS), _BETWEEN)
    fits = F.size(parts) == len(_KINDS)
    fields = (
        _field(F.when(fits, F.get(parts, F.lit(index))), kind).alias(name)
        for index, (name, kind) in enumerate(_KINDS.items())
    )
    return F.struct(*fields)


def _field(text: Column, kind: str) -> Column:
    text = F.when(~text.isin("", "-"), text)
    if kind == "timestamp":
        return F.try_to_timestamp(text, F.lit(TIME))
    return text.try_cast(kind)
