r"""Kcat's percent language: how a record is printed, and how one is read from a line.

| | |
|---|---|
| `%s` `%v` | value |
| `%k` | key |
| `%t` `%p` `%o` | topic, partition, offset |
| `%T` `%d` | timestamp in ms; `%T{iso}` as ISO-8601 |
| `%h` | headers as `name=value,...`; `%h{%k: %v;}` each in a form of its own |
| `%S` `%V` `%K` | length of value and key; -1 without one |
| `%R` | length of the value as four bytes |
| `%%` `\n` `\t` `\x1f` | a percent sign, and characters |

`%k{hex}`, `%v{base64}` and `%v{json}` spell bytes otherwise. Nothing follows a record by itself.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from penstock.errors import ConfigError
from penstock.record.record import Record
from penstock.record_view.timestamp import iso_time
from penstock.types import TopicPartition

Part: TypeAlias = Callable[[TopicPartition, Record], bytes]
_TOKEN: Final = re.compile(r"%%|%([a-zA-Z])(\{(?:%[kv]|[^{}])*\})?|%|[^%]+", re.DOTALL)
_SYNONYMS: Final = {"v": "s", "V": "S", "d": "T"}
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}
_SPELLINGS: Final = {"hex", "base64", "json"}


@dataclass(frozen=True, slots=True)
class TemplateVerb:
    """A verb such as `%k{hex}`: a letter, and the text in braces."""

    letter: str
    modifier: str | None = None

    def __str__(self) -> str:
        return f"%{self.letter}" + ("" if self.modifier is None else f"{{{self.modifier}}}")


def parsed(template: str) -> list[bytes | TemplateVerb]:
    """The literal bytes and verbs of a template, in order."""
    found: list[bytes | TemplateVerb] = []
    for token in _TOKEN.finditer(template):
        if token[0] == "%":
            raise ConfigError(f"template {template!r}: a lone % is written %%")
        if token[1] is None:
            text = "%" if token[0] == "%%" else unescaped(token[0])
            literal = text.encode(errors="surrogateescape")
            if found and isinstance(found[-1], bytes):
                found[-1] += literal
            else:
                found.append(literal)
        else:
            modifier = None if token[2] is None else token[2][1:-1]
            found.append(TemplateVerb(_SYNONYMS.get(token[1], token[1]), modifier))
    return found


def unescaped(text: str) -> str:
    r"""Replace `\t`, `\n`, `\r`, `\0`, `\\` and `\x1f` by the characters they mean."""

    def character(found: re.Match[str]) -> str:
        return chr(int(found[1][1:], 16)) if found[1].startswith("x") else _ESCAPES[found[1]]

    return re.sub(r"\\(x[0-9A-Fa-f]{2}|[tnr0\\])", character, text)


def printing(template: str) -> Part:
    """A function that prints a record with this template; `ConfigError` if it is malformed."""
    parts = [_part(each, template) for each in parsed(template)]
    return lambda partition, record: b"".join(part(partition, record) for part in parts)


def _part(token: bytes | TemplateVerb, template: str) -> Part:
    if isinstance(token, bytes):
        return lambda _partition, _record: token
    spell = _spelling(token, template)
    match token.letter:
        case "k":
            return lambda _partition, record: spell(record.key)
        case "s":
            return lambda _partition, record: spell(record.value)
        case "h":
            return _headers(token, template)
        case _:
            pass
    numbers: dict[str, Part] = {
        "t": lambda partition, _record: partition.topic.encode(),
        "p": lambda partition, _record: b"%d" % partition.partition,
        "o": lambda _partition, record: b"%d" % record.offset,
        "T": lambda _partition, record: b"%d" % record.timestamp,
        "K": lambda _partition, record: b"%d" % _length(record.key),
        "S": lambda _partition, record: b"%d" % _length(record.value),
        "R": lambda _partition, record: _length(record.value).to_bytes(4, "big", signed=True),
    }
    if token == TemplateVerb("T", "iso"):
        return lambda _partition, record: (iso_time(record.timestamp) or "-").encode()
    if token.letter not in numbers:
        raise ConfigError(
            f"template {template!r}: {token} is unknown; there are %k %s %v %t %p %o %T %d %h "
            "%K %S %V %R %%"
        )
    if token.modifier is not None:
        raise ConfigError(f"template {template!r}: {token} has no {{{token.modifier}}}")
    return numbers[token.letter]


def _spelling(token: TemplateVerb, template: str) -> Callable[[bytes | None], bytes]:
    if token.letter not in {"k", "s"} or token.modifier is None:
        return lambda data: data or b""
    if token.modifier not in _SPELLINGS:
        known = ", ".join(sorted(_SPELLINGS))
        raise ConfigError(f"template {template!r}: {token}: in braces may be {known}")
    if token.modifier == "hex":
        return lambda data: (data or b"").hex().encode()
    if token.modifier == "base64":
        return lambda data: b64encode(data or b"")
    return lambda data: msgspec.json.encode(None if data is None else data.decode(errors="replace"))


def _headers(token: TemplateVerb, template: str) -> Part:
    inner = token.modifier
    if inner is None:
        return lambda _partition, record: b",".join(
            name.encode(errors="surrogateescape") + b"=" + (value or b"")
            for name, value in record.headers
        )
    for each in parsed(inner):
        if isinstance(each, TemplateVerb) and each.letter not in {"k", "s"}:
            raise ConfigError(f"template {template!r}: {each} is not in a header; %k and %v are")
    print_one = printing(inner)

    def each_header(partition: TopicPartition, record: Record) -> bytes:
        return b"".join(
            print_one(partition, Record(0, 0, name.encode(errors="surrogateescape"), value, []))
            for name, value in record.headers
        )

    return each_header


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


@dataclass(frozen=True, slots=True)
class LineFields:
    """The fields of a record on a line; None where the template has no verb for it."""

    topic: str | None = None
    key: bytes | None = None
    value: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class NoMatch(ConfigError):
    """The line is not in the template's form."""


def reading(template: str) -> Callable[[bytes], LineFields]:
    r"""A function that reads a line in this form; a `\n` at the template's end is the line's."""
    tokens = parsed(template)
    if tokens and isinstance(tokens[-1], bytes):
        tokens[-1] = tokens[-1].removesuffix(b"\n")
    verbs = [each for each in tokens if isinstance(each, TemplateVerb)]
    for each in verbs:
        if each.letter not in "kstpTh":
            raise ConfigError(
                f"template {template!r}: {each} cannot be read; %k %s %t %p %T %h can"
            )
    if len({each.letter for each in verbs}) < len(verbs) or not verbs:
        raise ConfigError(f"template {template!r}: name each of %k %s %t %p %T %h at most once")
    pattern = re.compile(b"".join(_patterns(tokens)), re.DOTALL)

    def read(line: bytes) -> LineFields:
        found = pattern.fullmatch(line)
        if found is None:
            raise NoMatch(f"it is not in the form {template!r}")
        return _fields(verbs, found)

    return read


def _patterns(tokens: list[bytes | TemplateVerb]) -> Iterator[bytes]:
    for at, token in enumerate(tokens):
        if isinstance(token, bytes):
            yield re.escape(token)
        elif token.letter in "pT":
            yield b"([0-9]{1,18})"
        else:
            yield b"(.*)" if at == len(tokens) - 1 else b"(.*?)"


def _fields(verbs: list[TemplateVerb], found: re.Match[bytes]) -> LineFields:
    data = {verb.letter: _unspelled(verb, found[at]) for at, verb in enumerate(verbs, 1)}
    try:
        return LineFields(
            topic=data["t"].decode() if "t" in data else None,
            key=data.get("k"),
            value=data.get("s"),
            partition=int(data["p"]) if "p" in data else None,
            timestamp_ms=int(data["T"]) if "T" in data else None,
            headers=tuple(_line_headers(data.get("h", b""))),
        )
    except UnicodeDecodeError:
        raise NoMatch("names must be UTF-8") from None


def _unspelled(verb: TemplateVerb, data: bytes) -> bytes:
    try:
        match verb.modifier:
            case "hex":
                return bytes.fromhex(data.decode())
            case "base64":
                return b64decode(data, validate=True)
            case "json":
                return msgspec.json.decode(data, type=str).encode()
            case _:
                return data
    except (ValueError, msgspec.DecodeError):
        raise NoMatch(f"{data[:50]!r} is not {verb.modifier}") from None


def _line_headers(data: bytes) -> Iterator[tuple[str, bytes | None]]:
    for each in data.split(b","):
        if each:
            name, equals, value = each.partition(b"=")
            if not equals:
                raise NoMatch(f"{each!r} is not a header such as name=value")
            yield name.decode(), value
