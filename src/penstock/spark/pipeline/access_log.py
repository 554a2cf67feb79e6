"""Lines of web servers: the common and the combined log format of Apache and nginx."""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

LINE: Final = (
    r"^(\S+) \S+ (\S+) \[([^\]]+)\] "  # client, identity, user, time
    r'"(?:(\S+) (\S+)(?: (\S+))?|[^"]*)" (\d{3}) (\d+|-)'  # request, status, bytes
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?'  # referer, agent: combined only
    r"(?: (\d+\.\d+))?.*$"  # nginx's $request_time where it was put next
)
TIME: Final = "dd/MMM/yyyy:HH:mm:ss Z"
_GROUPS: Final = {
    "client": (1, "string"),
    "user": (2, "string"),
    "at": (3, "timestamp"),
    "method": (4, "string"),
    "path": (5, "string"),
    "protocol": (6, "string"),
    "status": (7, "int"),
    "bytes": (8, "bigint"),
    "referer": (9, "string"),
    "agent": (10, "string"),
    "seconds": (11, "double"),
}


def access_log_fields(line: Column) -> Column:
    """A struct; what a line leaves out or writes as `-` is null, and all is where none fits."""
    return F.struct(*(_field(line, *each).alias(name) for name, each in _GROUPS.items()))


def _field(line: Column, group: int, kind: str) -> Column:
    text = F.regexp_extract(line, LINE, group)
    text = F.when(text.isin("", "-"), F.lit(None)).otherwise(text)
    if kind == "timestamp":
        return F.try_to_timestamp(text, F.lit(TIME))
    return text.try_cast(kind)
