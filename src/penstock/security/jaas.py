"""Parses a broker's `sasl.jaas.config`: the users of a listener, or the broker's own login.

It is strict, because the text is written for this broker: the module has its full name, and no
option may be repeated. No error quotes the text, because it holds passwords.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from penstock.config.jaas import jaas_options, jaas_tokens
from penstock.errors import ConfigError

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule": ("OAUTHBEARER",),
}
"""The supported login modules, with their mechanisms."""

USER_PREFIX: Final = "user_"


class LoginModule(msgspec.Struct, frozen=True):
    """A login module and its options. The repr hides the options, because they hold secrets."""

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
    """The login module for this mechanism. `setting` names the text in errors."""
    tokens = jaas_tokens(setting, text)
    if not tokens or tokens[0] not in MODULES:
        known = " or ".join(MODULES)
        raise ConfigError(f"{setting} must begin with {known}")
    name = tokens[0]
    if mechanism not in MODULES[name]:
        raise ConfigError(f"{setting}: {name.rpartition('.')[2]} is not for {mechanism}")
    return LoginModule(name, jaas_options(setting, tokens, repeatable=False))
