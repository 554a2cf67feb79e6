"""The machinery by which one line declares one setting.

From that line come the typed attribute, parsing and range check, Kafka's text form, DescribeConfigs
and the docs. Pure: where the texts come from is `penstock.config.sources`' affair.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, cast

from penstock.config.value import PARSERS, Kind, Value
from penstock.errors import ConfigError

T = TypeVar("T")


WITHOUT_EFFECT = "Accepted, without effect"
"""How the doc of a setting begins that no code reads."""


class Update(Enum):
    """Whether a running broker takes a new value, and for whom (Kafka's dynamic update modes)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Synonym(NamedTuple):
    """The broker setting that gives a topic setting its default, in units of `factor`."""

    name: str
    factor: int = 1


class Form(NamedTuple):
    """A shape that texts must have, and how to say it to people."""

    pattern: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One declared setting. `low` and `high` are inclusive; `also` is allowed outside them."""

    name: str
    kind: Kind
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    also: int | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    form: Form | None = None
    update: Update = Update.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    only: str = ""
    """Why no other value than the default is taken: it would promise what is not kept."""

    @property
    def without_effect(self) -> bool:
        """Taken and described, so that Kafka's files start a broker; no code reads it."""
        return self.doc.startswith(WITHOUT_EFFECT)

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    @property
    def allowed(self) -> str:
        """What values are taken, in words that complete "must be"."""
        if self.only:
            default = "not set" if self.default is None else str(self.default).lower()
            return f"{default}: {self.only}"
        if self.choices:
            names = ", ".join(self.choices)
            return f"a list of {names}" if self.kind is Kind.LIST else f"one of {names}"
        if self.form:
            return self.form.words
        bounds = ""
        if self.low is not None and self.high is not None:
            bounds = f" from {self.low} to {self.high}"
        elif self.low is not None:
            bounds = f" of at least {self.low}"
        other = "" if self.also is None else f", or {self.also}"
        return _NOUNS[self.kind] + bounds + other


class SettingError(ConfigError):
    """A value that its setting does not take. `origin` says where it was written."""

    def __init__(self, setting: Setting, text: str, origin: str = "") -> None:
        shown = "[hidden]" if setting.sensitive else repr(text)
        where = f"{origin}: " if origin else ""
        super().__init__(f"{where}{setting.name} is {shown}, must be {setting.allowed}")
        self.setting, self.text, self.origin = setting, text, origin

    def at(self, origin: str) -> "SettingError":
        return SettingError(self.setting, self.text, origin)


_KIND_OF: dict[type, Kind] = {
    bool: Kind.BOOLEAN,
    int: Kind.INT,
    float: Kind.DOUBLE,
    str: Kind.STRING,
    tuple: Kind.LIST,
}

_NOUNS = {
    Kind.BOOLEAN: "true or false",
    Kind.STRING: "a string",
    Kind.INT: "a 32-bit integer",
    Kind.SHORT: "a 16-bit integer",
    Kind.LONG: "a 64-bit integer",
    Kind.DOUBLE: "a number",
    Kind.LIST: "a comma-separated list",
    Kind.CLASS: "a class name",
    Kind.PASSWORD: "a secret",
}

_BOUNDS = {Kind.SHORT: 1 << 15, Kind.INT: 1 << 31, Kind.LONG: 1 << 63}


class Traits(TypedDict, total=False):
    """What a declaration may add to name, default and doc; see `Setting`."""

    kind: Kind
    low: float
    high: float
    also: int
    choices: tuple[str, ...]
    any_case: bool
    form: Form
    update: Update
    synonyms: tuple[Synonym, ...]
    only: str


def setting(name: str, default: T, doc: str, **traits: Unpack[Traits]) -> T:
    """A dataclass field that carries its `Setting`; the kind follows from the default if left out.

    Typed as the default's own type: to a type checker the field is an ordinary one with a default.
    """
    traits.setdefault("kind", _KIND_OF.get(type(default), Kind.STRING))
    declared = Setting(name=name, default=cast("Value", default), doc=doc, **traits)
    return field(default=default, metadata={"setting": declared})


def attribute(name: str) -> str:
    """The attribute that holds a setting: its wire name with underscores."""
    return name.replace(".", "_").lower()


@cache
def settings(config: type) -> Mapping[str, Setting]:
    """The settings that a config class declares, by wire name and in their order."""
    found = (each.metadata.get("setting") for each in fields(config))
    return {each.name: each for each in found if each is not None}


def load(config: type[T], texts: Mapping[str, str], base: T | None = None) -> T:
    """Parse the texts that `config` declares, over `base` or the defaults; other names are left."""
    known = settings(cast("type", config))
    values = {name: parse(known[name], text) for name, text in texts.items() if name in known}
    return build(config, values, base)


def build(config: type[T], values: Mapping[str, Value], base: T | None = None) -> T:
    """A config object of values by wire name, over `base` or the defaults."""
    arguments: dict[str, Any] = {attribute(name): value for name, value in values.items()}
    return config(**arguments) if base is None else _replaced(base, arguments)


def _replaced(base: T, arguments: dict[str, Any]) -> T:
    changed: T = replace(cast("Any", base), **arguments)
    return changed


def parse(setting: Setting, text: str) -> Value:
    """The value that a text means; `SettingError` if it means none or one out of range."""
    try:
        value = PARSERS[setting.kind](text.strip())
    except ValueError:
        raise SettingError(setting, text) from None
    if setting.any_case and isinstance(value, str):
        value = value.lower()
    if setting.choices and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))  # naming a choice twice is harmless (KIP-1161)
    if not takes(setting, value):
        raise SettingError(setting, text)
    return value


def takes(setting: Setting, value: Value) -> bool:
    """Whether a value lies within the setting's type and range."""
    if setting.only:
        return value == setting.default
    if isinstance(value, int | float) and not isinstance(value, bool):
        bound = _BOUNDS.get(setting.kind)
        if bound is not None and not -bound <= value < bound:
            return False
        if value == setting.also:
            return True
        return (setting.low is None or value >= setting.low) and (
            setting.high is None or value <= setting.high
        )
    items = value if isinstance(value, tuple) else (value,)
    if setting.choices and not set(items) <= set(setting.choices):
        return False
    if setting.form and isinstance(value, tuple | str):
        text = ",".join(value) if isinstance(value, tuple) else value
        return re.fullmatch(setting.form.pattern, text) is not None
    return True
