"""The URL parameters of a search: parsing, and descriptions for OpenAPI. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from penstock.client.position import iso_ms
from penstock.console.messages.query import LARGEST, SEARCHED_PARTS, SearchQuery
from penstock.errors import ConfigError

DEFAULT_LIMIT: Final = 50
MOST_LIMIT: Final = 1000
DEFAULT_WITHIN_MS: Final = 1000
MOST_WITHIN_MS: Final = 30_000
NEWEST, OLDEST = "newest", "oldest"


class Parameter(NamedTuple):
    """A query parameter of a URL."""

    name: str
    text: str
    schema: Mapping[str, Any] = {"type": "string"}


NUMBER: Final = {"type": "integer", "minimum": 0}
QUERY: Final = (
    Parameter("partition", "Only these partitions, separated by commas."),
    Parameter("start", "The first offset, in each partition.", NUMBER),
    Parameter("end", "The offset to stop before.", NUMBER),
    Parameter("since", "The earliest time: ms since 1970, or ISO-8601."),
    Parameter("until", "The time to stop before. It ends at the first record of that time."),
    Parameter("text", "Bytes that the record contains, as UTF-8; upper and lower case differ."),
    Parameter("place", "Where the text is.", {"type": "string", "enum": list(SEARCHED_PARTS)}),
    Parameter("key", "The whole key, as UTF-8."),
    Parameter("expression", "CEL over key, value, headers, timestamp, offset, partition, topic."),
    Parameter("order", "By time; newest by default.", {"type": "string", "enum": [NEWEST, OLDEST]}),
    Parameter("committed", "Without open and aborted transactions.", {"type": "boolean"}),
)
PAGE: Final = (
    Parameter("cursor", "Where an answer ended, instead of all parameters of the search."),
    Parameter(
        "limit",
        f"The most records, {DEFAULT_LIMIT} by default; 0: only count.",
        {"type": "integer", "minimum": 0, "maximum": MOST_LIMIT},
    ),
    Parameter(
        "within_ms",
        f"Answer after so long with what was found, {DEFAULT_WITHIN_MS} by default.",
        {"type": "integer", "minimum": 1, "maximum": MOST_WITHIN_MS},
    ),
)

EXPORT: Final = (
    *QUERY,
    Parameter("format", "Of the file.", {"type": "string", "enum": ["jsonl", "csv"]}),
    Parameter("limit", "The most records; all by default.", {"type": "integer", "minimum": 0}),
)
TAIL: Final = (*QUERY, Parameter("after", "The id of the last event that was seen."))


class Paging(Struct, frozen=True):
    """How many records to return, how long to search, and where to continue."""

    cursor: str = ""
    limit: int = DEFAULT_LIMIT
    within_ms: int = DEFAULT_WITHIN_MS


def given(pairs: Iterable[tuple[str, str]], known: Iterable[Parameter]) -> dict[str, str]:
    """The parameters that have a value: forms send empty fields too."""
    names = [each.name for each in known]
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in names:
            raise ConfigError(f"{name} is not a parameter; there are {', '.join(names)}")
        if name in found:
            raise ConfigError(f"{name} is given twice")
        if value:
            found[name] = value
    return found


def query_of(topic: str, values: Mapping[str, str], order: str = NEWEST) -> SearchQuery:
    """Parse a query; `ConfigError` names the wrong parameter."""
    query = SearchQuery(
        topic,
        _partitions(values.get("partition", "")),
        text=values.get("text", ""),
        place=_one_of(values, "place", SEARCHED_PARTS),
        key=values.get("key"),
        expression=values.get("expression", ""),
        start=number(values, "start", 0, LARGEST),
        end=number(values, "end", LARGEST, LARGEST),
        since_ms=_time(values, "since", 0),
        until_ms=_time(values, "until", LARGEST),
        newest_first=_one_of(values, "order", (order, NEWEST, OLDEST)) == NEWEST,
        committed=_one_of(values, "committed", ("false", "true")) == "true",
    )
    if query.start > query.end:
        raise ConfigError(f"start {query.start} is behind end {query.end}")
    if query.since_ms > query.until_ms:
        raise ConfigError("since is after until")
    return query


def paging_of(values: Mapping[str, str]) -> Paging:
    if "cursor" in values and (others := sorted(set(values) & {each.name for each in QUERY})):
        raise ConfigError(f"cursor goes without {others[0]}: it has the whole search in it")
    return Paging(
        values.get("cursor", ""),
        number(values, "limit", DEFAULT_LIMIT, MOST_LIMIT),
        max(number(values, "within_ms", DEFAULT_WITHIN_MS, MOST_WITHIN_MS), 1),
    )


def number(values: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = values.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise ConfigError(f"{name} {text!r} is not a number from 0 to {most}")
    return int(text)


def _partitions(text: str) -> tuple[int, ...]:
    found = [each.strip() for each in text.split(",") if each.strip()]
    for each in found:
        number({"partition": each}, "partition", 0, (1 << 31) - 1)
    return tuple(sorted({int(each) for each in found}))


def _time(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit():
        return number(values, name, default, LARGEST)
    try:
        return iso_ms(text)
    except (ValueError, OverflowError):
        raise ConfigError(f"{name}: {text!r} is not a time: ms since 1970, or ISO-8601") from None


def _one_of(values: Mapping[str, str], name: str, known: tuple[Any, ...]) -> Any:
    text = values.get(name, known[0])
    if text not in known:
        raise ConfigError(f"{name} {text!r} is not one of {', '.join(dict.fromkeys(known))}")
    return text
