"""Declares settings, one line each.

Each line defines the typed attribute, parsing and range check, Kafka's text form, DescribeConfigs
and the docs. Pure; `penstock.config.sources` reads the values.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack, cast

from penstock.config.value import PARSERS, ConfigType, Value
from penstock.errors import ConfigError

T = TypeVar("T")


WITHOUT_EFFECT = "Accepted, without effect"
"""The documentation of a setting that no code reads starts with this."""


class Update(Enum):
    """Whether a running broker accepts a new value (Kafka's dynamic update modes)."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class BrokerSynonym(NamedTuple):
    """A broker setting that gives a topic setting its default, in units of `factor`."""

    name: str
    factor: int = 1


class Form(NamedTuple):
    """A pattern that values must match, and its description for people."""

    pattern: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A declared setting; `low` and `high` are inclusive, `also` is allowed outside them."""

    name: str
    kind: ConfigType
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    also: int | None = None
    choices: tuple[str, ...] = ()
    any_case: bool = False
    form: Form | None = None
    update: Update = Update.READ_ONLY
    synonyms: tuple[BrokerSynonym, ...] = ()
    only: str = ""
    """Why only the default is allowed: any other value would promise what the broker cannot do."""

    @property
    def without_effect(self) -> bool:
        """Whether no code reads the setting; it exists so that Kafka's files can start a broker."""
        # `in`, because topic defaults begin with the name of the topic setting
        return WITHOUT_EFFECT in self.doc

    @property
    def sensitive(self) -> bool:
        return self.kind is ConfigType.PASSWORD

    @property
    def allowed(self) -> str:
        """The allowed values, as a phrase that completes "must be"."""
        if self.only:
            default = "not set" if self.default is None else str(self.default).lower()
            return f"{default}: {self.only}"
        if self.choices:
            names = ", ".join(self.choices)
            return f"a list of {names}" if self.kind is ConfigType.LIST else f"one of {names}"
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
    """The setting does not allow a value; `origin` says where it was set."""

    def __init__(self, setting: Setting, text: str, origin: str = "") -> None:
        shown = "[hidden]" if setting.sensitive else repr(text)
        where = f"{origin}: " if origin else ""
        super().__init__(f"{where}{setting.name} is {shown}, must be {setting.allowed}")
        self.setting, self.text, self.origin = setting, text, origin

    def at(self, origin: str) -> "SettingError":
        return SettingError(self.setting, self.text, origin)


_KIND_OF: dict[type, ConfigType] = {
    bool: ConfigType.BOOLEAN,
    int: ConfigType.INT,
    float: ConfigType.DOUBLE,
    str: ConfigType.STRING,
    tuple: ConfigType.LIST,
}

_NOUNS = {
    ConfigType.BOOLEAN: "true or false",
    ConfigType.STRING: "a string",
    ConfigType.INT: "a 32-bit integer",
    ConfigType.SHORT: "a 16-bit integer",
    ConfigType.LONG: "a 64-bit integer",
    ConfigType.DOUBLE: "a number",
    ConfigType.LIST: "a comma-separated list",
    ConfigType.CLASS: "a class name",
    ConfigType.PASSWORD: "a secret",
}

_BOUNDS = {ConfigType.SHORT: 1 << 15, ConfigType.INT: 1 << 31, ConfigType.LONG: 1 << 63}


class Traits(TypedDict, total=False):
    """The optional parts of a declaration; see `Setting`."""

    kind: ConfigType
    low: float
    high: float
    also: int
    choices: tuple[str, ...]
    any_case: bool
    form: Form
    update: Update
    synonyms: tuple[BrokerSynonym, ...]
    only: str


def setting(name: str, default: T, doc: str, **traits: Unpack[Traits]) -> T:
    """A dataclass field with its `Setting`; the type follows from the default unless given.

    Type checkers see an ordinary field with a default of that type.
    """
    traits.setdefault("kind", _KIND_OF.get(type(default), ConfigType.STRING))
    declared = Setting(name=name, default=cast("Value", default), doc=doc, **traits)
    return field(default=default, metadata={"setting": declared})


def attribute(name: str) -> str:
    """The attribute of a setting: its name with underscores."""
    return name.replace(".", "_").lower()


@cache
def settings(config: type) -> Mapping[str, Setting]:
    """The settings that a config class declares, by name, in declaration order."""
    found = (each.metadata.get("setting") for each in fields(config))
    return {each.name: each for each in found if each is not None}


def load(config: type[T], texts: Mapping[str, str], base: T | None = None) -> T:
    """Parse the texts that `config` declares, over `base` or the defaults; ignores other names."""
    known = settings(cast("type", config))
    values = {name: parse(known[name], text) for name, text in texts.items() if name in known}
    return build(config, values, base)


def build(config: type[T], values: Mapping[str, Value], base: T | None = None) -> T:
    """A config object from values by name, over `base` or the defaults."""
    arguments: dict[str, Any] = {attribute(name): value for name, value in values.items()}
    return config(**arguments) if base is None else _replaced(base, arguments)


def _replaced(base: T, arguments: dict[str, Any]) -> T:
    changed: T = replace(cast("Any", base), **arguments)
    return changed


def parse(setting: Setting, text: str) -> Value:
    """The value of a text; raises `SettingError` if it is malformed or not allowed."""
    try:
        value = PARSERS[setting.kind](text.strip())
    except ValueError:
        raise SettingError(setting, text) from None
    if setting.any_case and isinstance(value, str):
        value = value.lower()
    if setting.choices and isinstance(value, tuple):
        value = tuple(dict.fromkeys(value))  # duplicates are harmless (KIP-1161)
    if not allows(setting, value):
        raise SettingError(setting, text)
    return value


def allows(setting: Setting, value: Value) -> bool:
    """Whether the setting's type and range allow a value."""
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
