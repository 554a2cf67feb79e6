"""Reads Java's `sasl.jaas.config`, so that a job keeps its settings."""

import re
from typing import Final

from penstock.client.sasl import Login
from penstock.errors import ConfigError

_SETTING: Final = "kafka.sasl.jaas.config"
_INSTEAD: Final = "; write kafka.sasl.username and kafka.sasl.password instead"
_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s=;"']+|[=;])""")


def parse_jaas(text: str, mechanism: str) -> Login:
    """The login in `text`, for the mechanism of `kafka.sasl.mechanism`."""
    tokens = _tokens(text)
    module = tokens[0].rpartition(".")[2] if tokens else ""
    if module not in _MODULES:
        known = " or ".join(_MODULES)
        raise ConfigError(f"{_SETTING}: {module or 'nothing'} is not {known}{_INSTEAD}")
    if mechanism not in _MODULES[module]:
        raise ConfigError(f"{_SETTING} has a {module}, but kafka.sasl.mechanism is {mechanism}")
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ConfigError(f"{_SETTING}: 'required' must follow {tokens[0]}")
    if tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f"{_SETTING} must name one login module and end with a semicolon")
    options = _options(tokens[2:-1])
    if options.get("tokenauth", "").lower() == "true":
        raise ConfigError(f"{_SETTING}: delegation tokens are not supported{_INSTEAD}")
    for needed in ("username", "password"):
        if needed not in options:
            raise ConfigError(f"{_SETTING} has no {needed}")
    return Login(mechanism, options["username"], options["password"])


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            # Without the text itself, which holds a password.
            raise ConfigError(f"{_SETTING}: an unfinished quote at character {at}")
        found.append(match[1])
        at = match.end()
    return found


def _options(tokens: list[str]) -> dict[str, str]:
    options = {}
    for at in range(0, len(tokens), 3):
        group = tokens[at : at + 3]
        if len(group) != 3 or group[1] != "=":
            raise ConfigError(f"{_SETTING}: {group[0]!r} must be followed by =value")
        options[group[0]] = _unquoted(group[2])
    return options


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "\"'" else token
