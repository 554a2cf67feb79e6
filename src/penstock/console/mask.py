"""Masks: fields that viewers do not see. Pure.

A rule is `[TOPIC:]value.card.number`, `key.user`, `value` or `header.authorization`; `*` stands for
any field, and a rule applies to each element of a list. The record itself is masked before it is
searched, shown, followed or exported, so that a search cannot reveal what a page hides.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.decoded import Decode

MASKED: Final = "***"
PARTS: Final = ("key", "value", "header")


@dataclass(frozen=True, slots=True)
class Mask:
    """A masking rule; an empty path masks the whole part."""

    topics: str
    part: str
    path: tuple[str, ...]


def parse_mask(text: str) -> Mask:
    topics, colon, rest = text.rpartition(":")
    part, *path = rest.split(".")
    if part not in PARTS or not all(path) or (part == "header" and not path):
        raise ConfigError(
            f"--mask {text!r} is not one of [TOPIC:]value.FIELD, [TOPIC:]key.FIELD, "
            "[TOPIC:]header.NAME"
        )
    if part == "header":
        path = [".".join(path).lower()]
    return Mask(topics if colon else "*", part, tuple(path))


class Masks:
    """A set of rules; `of(topic)` selects those for a topic."""

    def __init__(self, rules: Sequence[Mask] = ()) -> None:
        self._rules = tuple(rules)

    def of(self, topic: str) -> "Masks":
        return Masks([each for each in self._rules if fnmatchcase(topic, each.topics)])

    def __bool__(self) -> bool:
        return bool(self._rules)

    def hides_header(self, names: Collection[str]) -> bool:
        """Whether one of these header names, in lower case, is masked."""
        return any(each.part == "header" and each.path[0] in names for each in self._rules)

    def applied(self, record: Record, decode: Decode) -> Record:
        """The record as a viewer may see it."""
        names = {each.path[0] for each in self._rules if each.part == "header"}
        return Record(
            record.offset,
            record.timestamp,
            self._hidden("key", record.key, decode),
            self._hidden("value", record.value, decode),
            [
                (name, value if value is None or name.lower() not in names else MASKED.encode())
                for name, value in record.headers
            ],
        )

    def _hidden(self, part: str, data: bytes | None, decode: Decode) -> bytes | None:
        paths = [each.path for each in self._rules if each.part == part]
        if not data or not paths:
            return data
        decoded = decode(data)
        if not isinstance(decoded.value, dict | list):
            return MASKED.encode()  # the field may be inside data that was not decoded
        try:
            hidden: Any = decoded.value
            for path in paths:
                hidden = masked(hidden, path)
            if hidden == MASKED:
                return MASKED.encode()
            shown = msgspec.json.encode(hidden)
        except RecursionError:  # too deeply nested to search
            return MASKED.encode()
        return data if decoded.format == "json" and _says_no_more(data, shown) else shown


def _says_no_more(data: bytes, shown: bytes) -> bool:
    """Whether the JSON text has exactly the decoded content. It differs if a name is repeated,
    because decoding keeps only one of the values, and the raw text would reveal the other.
    """
    return msgspec.json.format(data, indent=-1) == shown


def masked(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return MASKED
    if isinstance(value, list):
        return [masked(each, path) for each in value]
    if isinstance(value, dict):
        first, *rest = path
        return {
            name: masked(each, rest) if first in {name, "*"} else each
            for name, each in value.items()
        }
    # The text looks like nested JSON, which is not decoded and may contain the field.
    return MASKED if isinstance(value, str) and value.lstrip()[:1] in {"{", "["} else value
