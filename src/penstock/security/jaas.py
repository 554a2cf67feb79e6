"""Java's login configuration (`sasl.jaas.config`): one login module with its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

No error quotes the text: it holds passwords.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from penstock.errors import ConfigError

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
"""The login modules that mean something here, with their mechanisms."""

USER_PREFIX: Final = "user_"
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""(?:\s|//[^\n]*|/\*.*?\*/)*("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^\s=;"']+|[=;])""",
    re.DOTALL,
)
_BLANK: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


class LoginModule(msgspec.Struct, frozen=True):
    """A login module and its options. The options hold secrets, so that repr hides them."""

    name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name}, {len(self.options)} options)"

    def users(self) -> dict[str, str]:
        """Passwords by user, from `user_<name>="<password>"`."""
        return {
            name.removeprefix(USER_PREFIX): password
            for name, password in self.options.items()
            if name.startswith(USER_PREFIX)
        }


def parse_jaas(setting: str, text: str, mechanism: str) -> LoginModule:
    """The login module of this mechanism. `setting` names the text in errors."""
    tokens = _tokens(setting, text)
    if not tokens or tokens[0] not in MODULES:
        known = " or ".join(MODULES)
        raise ConfigError(f"{setting} must begin with {known}")
    name = tokens[0]
    if mechanism not in MODULES[name]:
        raise ConfigError(f"{setting}: {name.rpartition('.')[2]} is not for {mechanism}")
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ConfigError(f"{setting}: 'required' must follow {name}")
    if tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f"{setting} must name one login module and end with a semicolon")
    return LoginModule(name, _options(setting, tokens[2:-1]))


def _tokens(setting: str, text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            break
        found.append(match[1])
        at = match.end()
    blank = _BLANK.match(text, at)
    if blank is None or blank.end() != len(text):
        raise ConfigError(f"{setting}: a quote is not closed at character {at + 1}")
    return found


def _options(setting: str, tokens: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for at in range(0, len(tokens), 3):
        group = tokens[at : at + 3]
        # Values that are not in quotes may be secrets that lost them: only the position is told.
        if len(group) != 3 or group[1] != "=" or group[0] == "=" or group[2] == "=":
            raise ConfigError(f'{setting}: option {at // 3 + 1} must be name="value"')
        if group[0] in options:
            raise ConfigError(f"{setting}: option {at // 3 + 1} is there twice")
        options[group[0]] = _unquoted(group[2])
    return options


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "\"'" else token
