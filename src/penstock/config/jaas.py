"""The format of `sasl.jaas.config`, Java's login configuration: one login module and its options.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";

Brokers (`security/jaas.py`) and clients (`client/jaas.py`) accept different modules and options. No
error quotes the text, because it holds passwords.
"""

import re
from typing import Final

from penstock.errors import ConfigError

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_BLANK: Final = r"(?:\s|//[^\n]*|/\*.*?\*/)*"
_TOKEN: Final = re.compile(
    _BLANK + r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^\s=;"']+|[=;])""", re.DOTALL
)
_END: Final = re.compile(_BLANK + r"\Z", re.DOTALL)


def jaas_tokens(setting: str, text: str) -> list[str]:
    """The tokens of a login configuration, without comments. Errors name `setting`."""
    found: list[str] = []
    at = 0
    while match := _TOKEN.match(text, at):
        found.append(match[1])
        at = match.end()
    if _END.match(text, at) is None:
        raise ConfigError(f"{setting}: a quote is not closed at character {at + 1}")
    return found


def jaas_options(setting: str, tokens: list[str], *, repeatable: bool) -> dict[str, str]:
    """The options of the login module `tokens[0]`; the last value of a repeated option wins."""
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ConfigError(f"{setting}: 'required' must follow {tokens[0]}")
    if tokens[-1] != ";" or tokens.count(";") != 1:
        raise ConfigError(f"{setting} must name one login module and end with a semicolon")
    options: dict[str, str] = {}
    words = tokens[2:-1]
    for at in range(0, len(words), 3):
        group = words[at : at + 3]
        # An unquoted value may be a secret that lost its quotes, so the error names only the
        # position.
        if len(group) != 3 or group[1] != "=" or group[0] == "=" or group[2] == "=":
            raise ConfigError(f'{setting}: option {at // 3 + 1} must be name="value"')
        if group[0] in options and not repeatable:
            raise ConfigError(f"{setting}: option {at // 3 + 1} is there twice")
        options[group[0]] = _unquoted(group[2])
    return options


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1]) if token[0] in "\"'" else token
