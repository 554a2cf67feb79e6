"""Flows as `penstock.yml` describes them: a source, optional SQL, and a sink."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Final

import msgspec

from penstock.errors import ConfigError

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARYING: Final = re.compile(
    r"\b(?:(?:now|curdate|rand|random|randn|uuid|uniform|randstr|shuffle|spark_partition_id"
    r"|monotonically_increasing_id) *\("
    r"|unix_timestamp *\( *\)|(?:current_(?:timestamp|date|time)|localtimestamp)\b)"
    r"|(?:\b(?:date|timestamp(?:_ntz|_ltz)?|cast) *\(?|<=?|(?<!<)>=?)"
    r" *'[^'\w]*(?:now|today|tomorrow|yesterday)\b[^']*'",
    re.IGNORECASE,
)
"""SQL functions and literals with a different result each time."""
SOURCES: Final = ("topic", "files", "table")
SINKS: Final = ("topic", "parquet", "delta", "table")
CONFLUENT: Final = ("confluent-avro", "confluent-protobuf", "confluent-json")
"""A subject in a registry defines their columns; the source's options name it."""
PLAIN: Final = ("json", "avro", "csv", "text", "access-log")
FORMATS: Final = (*PLAIN, *CONFLUENT)
NEED_SCHEMA: Final = ("json", "avro", "csv")
OTHERWISE: Final = ("keep", "drop", "fail")
UNREADABLE: Final = "unreadable"
"""The kind of dead letters whose values could not be read."""


class From(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of topic, files and table."""

    topic: str | None = None
    files: str | None = None
    table: str | None = None
    url: str | None = None
    increasing: str | None = None
    format: str | None = None
    schema: str | None = None
    group: str | None = None
    options: dict[str, str] = {}


class To(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Exactly one of topic, parquet, delta and table."""

    topic: str | None = None
    parquet: str | None = None
    delta: str | None = None
    table: str | None = None
    url: str | None = None
    key: str | list[str] | None = None
    partition_by: list[str] = []
    options: dict[str, str] = {}

    @property
    def keys(self) -> list[str]:
        return [self.key] if isinstance(self.key, str) else list(self.key or [])


class Expect(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A condition on each row, and what happens to rows that break it."""

    name: str
    condition: str
    otherwise: str = "drop"


class FlowSpec(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"source": "from"}):
    """A flow."""

    name: str
    source: From
    to: To
    sql: str | None = None
    expect: list[Expect] = []
    dead_letters: str | None = None


def slug_of(expectation: str) -> str:
    """The name of its count, and of the query for its dead letters."""
    return re.sub(r"\W+", "_", expectation).strip("_").lower() or "expectation"


def check_repeatable(name: str, condition: str) -> None:
    """Two queries evaluate the condition, one to drop rows and one for dead letters: they must
    agree.
    """
    found = _VARYING.search(condition)
    if found is not None:
        raise ConfigError(
            f"expect {name!r}: {found[0].split('(')[0].strip()} has another result where rows are "
            "sent to dead_letters: they would be lost, or twice; compare columns instead"
        )


def check_read_whole(options: Mapping[str, str]) -> None:
    """A pipeline reads a topic once for the rows and once for each kind of dead letters."""
    if "sharegroup" in map(str.lower, options):
        raise ConfigError(
            "option shareGroup cannot be used in a pipeline: each of its queries would get only a "
            "part of the group's records; use readStream in a program of your own"
        )


def query_names(flow: FlowSpec) -> list[str]:
    """The flow's own query, and those of its dead letters. Checkpoints have the same names."""
    kinds: list[str] = []
    if flow.dead_letters is not None:
        kinds += [UNREADABLE] if flow.source.format is not None else []
        kinds += [slug_of(each.name) for each in flow.expect if each.otherwise == "drop"]
    return [flow.name, *(f"{flow.name}.{kind}" for kind in kinds)]


def check_flow(flow: FlowSpec) -> None:
    """Find mistakes before Spark starts."""
    if not _NAME.fullmatch(flow.name):
        raise ConfigError("the name may have letters, digits, dots, dashes and underscores")
    source, to = flow.source, flow.to
    _one_of("from", source, SOURCES)
    _one_of("to", to, SINKS)
    _check_format(source)
    _only_with(source.table, {"url": source.url, "increasing": source.increasing}, "from.table")
    _only_with(to.table, {"url": to.url}, "to.table")
    if to.table and not to.key:
        raise ConfigError("to.key: a table needs the key columns of its upserts")
    if to.partition_by and not (to.parquet or to.delta):
        raise ConfigError("to.partition_by: only for files; a topic is partitioned by key")
    if source.group and not source.topic:
        raise ConfigError("from.group: only a topic has a group")
    check_read_whole(source.options)
    if flow.sql is not None:
        _check_sql(flow.sql)
    for each in flow.expect:
        if each.otherwise not in OTHERWISE:
            raise ConfigError(
                f"expect {each.name!r}: otherwise {each.otherwise!r} is not one of "
                f"{', '.join(OTHERWISE)}"
            )
        if flow.dead_letters is not None and each.otherwise == "drop":
            check_repeatable(each.name, each.condition)
    _check_expectation_names(flow)


def _check_sql(query: str) -> None:
    """Spark replaces names in braces, as Python's `str.format` does: also `{source[id]}`."""
    if "{source}" not in query:
        raise ConfigError("sql: must read from {source}, such as: select * from {source}")
    try:
        found = [name for _, name, _, _ in Formatter().parse(query) if name is not None]
        names = {re.split(r"[.\[]", name)[0] for name in found}
    except ValueError:  # a single brace
        names = set()
    if names != {"source"}:
        raise ConfigError(
            "sql: write other braces than those of {source} twice, as in '[0-9]{{2}}'"
        )


def _check_expectation_names(flow: FlowSpec) -> None:
    """If two had one name, only one would get its dead letters."""
    taken = {UNREADABLE: "values that cannot be read"} if flow.dead_letters is not None else {}
    for each in flow.expect:
        slug = slug_of(each.name)
        if slug in taken:
            raise ConfigError(
                f"expect {each.name!r}: its rows would be counted and sent on as {slug!r}, like "
                f"{taken[slug]}; give it another name, in letters and digits"
            )
        taken[slug] = f"those of {each.name!r}"


def _one_of(where: str, what: From | To, names: tuple[str, ...]) -> None:
    given = [name for name in names if getattr(what, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none"
        raise ConfigError(f"{where}: needs exactly one of {', '.join(names)}; {found} is given")


def _check_format(source: From) -> None:
    if source.format is None:
        if source.schema is not None:
            raise ConfigError("from.schema: needs from.format")
        return
    if source.table is not None:
        raise ConfigError("from.format: a table has columns already")
    if source.format not in FORMATS:
        raise ConfigError(f"from.format: {source.format!r} is not one of {', '.join(FORMATS)}")
    if source.format in {"avro", *CONFLUENT} and source.topic is None:
        raise ConfigError(
            f"from.format: {source.format} is only for topics; lines of files are text"
        )
    if source.format in NEED_SCHEMA and not source.schema:
        raise ConfigError(f"from.schema: {source.format} needs one, such as 'id int, name string'")
    if source.format not in NEED_SCHEMA and source.schema:
        raise ConfigError(f"from.schema: {source.format} has columns of its own")


def _only_with(owner: str | None, parts: dict[str, str | None], name: str) -> None:
    for part, value in parts.items():
        where = f"{name.partition('.')[0]}.{part}"
        if owner is None and value is not None:
            raise ConfigError(f"{where}: only with {name}")
        if owner is not None and value is None:
            raise ConfigError(f"{where}: {name} needs it")
