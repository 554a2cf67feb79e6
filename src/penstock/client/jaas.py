"""Reads Java's `sasl.jaas.config` of a client. No error quotes it, because of the password."""

import re
from typing import Final

from penstock.client.sasl import Login
from penstock.errors import ConfigError

_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(r"""\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s=;"']+|[=;])""")


def parse_jaas(text: str, mechanism: str, prefix: str = "") -> Login:
    """The login in `text`, for this mechanism. `prefix` is that of the settings, for messages."""
    setting = f"{prefix}sasl.jaas.config"
    instead = f"; write {prefix}sasl.username and {prefix}sasl.password instead"
    tokens = _tokens(setting, text)
    module = tokens[0].rpartition(".")[2] if tokens else ""
    if module not in _MODULES:
        known = " or ".join(_MODULES)
        found = "its first word" if module else "nothing"
        raise ConfigError(
            f"{setting} does not name a login module for {mechanism}: {found} is not {known}"
            f"{instead}"
        )
    if mechanism not in _MODULES[module]:
        raise ConfigError(
            f"{setting} does not name a login module for {mechanism}, which is "
            f"{prefix}sasl.mechanism, but a {module}"
        )
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ConfigError(f"{setting}: 'required' must follow {tokens[0]}")
    if tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f"{setting} must name one login module and end with a semicolon")
    options = _options(setting, tokens[2:-1])
    if options.get("tokenauth", "").lower() == "true":
        raise ConfigError(f"{setting}: delegation tokens are not supported{instead}")
    for needed in ("username", "password"):
        if needed not in options:
            raise ConfigError(f"{setting} has no {needed}")
    return Login(mechanism, options["username"], options["password"])


def _tokens(setting: str, text: str) -> list[str]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConfigError(f"{setting}: an unfinished quote at character {at}")
        found.append(match[1])
        at = match.end()
    return found


def _options(setting: str, tokens: list[str]) -> dict[str, str]:
    options = {}
    for at in range(0, len(tokens), 3):
        group = tokens[at : at + 3]
        if len(group) != 3 or group[1] != "=":
            raise ConfigError(
                f'{setting}: option {at // 3 + 1} is not of the form name="value" or name=value'
            )
        options[group[0]] = _unquoted(group[2])
    return options


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "\"'" else token
