"""Java's login strings of clients (`sasl.jaas.config`). No error quotes them, for the password."""

import re
from typing import Final

from penstock.client.sasl import Login
from penstock.errors import ConfigError

_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
_LOGIN: Final = re.compile(r"\s*(?:[\w.]+\.)?(\w+)\s+required\b(.*);\s*", re.DOTALL | re.IGNORECASE)
_OPTION: Final = re.compile(
    r"""\s*([\w.]+)\s*=\s*("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^\s;"']+)\s*"""
)


def login_of(text: str, mechanism: str) -> Login:
    """The login that a text names, for this mechanism."""
    match = _LOGIN.fullmatch(text)
    if match is None or mechanism not in _MODULES.get(match[1], ()):
        raise ConfigError(
            f"sasl.jaas.config does not name a login module for {mechanism}; write sasl.username "
            "and sasl.password instead"
        )
    options, rest, at = {}, match[2], 0
    while at < len(rest.rstrip()):
        option = _OPTION.match(rest, at)
        if option is None:
            raise ConfigError('sasl.jaas.config: an option is not of the form name="value"')
        value = option[2]
        options[option[1]] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value
        at = option.end()
    for needed in ("username", "password"):
        if needed not in options:
            raise ConfigError(f"sasl.jaas.config has no {needed}")
    return Login(mechanism, options["username"], options["password"])
