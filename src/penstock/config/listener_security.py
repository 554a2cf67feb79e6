"""Security settings of one listener, or of one mechanism of it.

`listener.name.<name>.<setting>` overrides `<setting>`, and
`listener.name.<name>.<mechanism>.<setting>` overrides both. Names of listeners and mechanisms are
in lower case.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.config.listener import SecurityProtocol
from penstock.config.security import SecurityConfig
from penstock.config.setting import Setting, Update, load, settings

MECHANISMS = ("plain", "scram-sha-256", "scram-sha-512", "gssapi", "oauthbearer")
_PREFIXED = re.compile(
    rf"listener\.name\.(?P<listener>[^.]+)\.(?:(?P<mechanism>{'|'.join(MECHANISMS)})\.)?(?P<name>.+)"
)


def listener_setting(name: str) -> Setting | None:
    """The declaration of a setting with a listener prefix; None without a prefix, or if unknown."""
    match = _PREFIXED.fullmatch(name.lower())
    return None if match is None else settings(SecurityConfig).get(match["name"])


def listener_of(name: str) -> str | None:
    """The listener of a prefixed setting, in upper case; None for a setting of all listeners."""
    match = _PREFIXED.fullmatch(name.lower())
    return None if match is None else match["listener"].upper()


def is_alterable(name: str) -> bool:
    """Whether a running broker accepts a new value of this listener setting (KIP-226)."""
    setting = listener_setting(name)
    return setting is not None and setting.update is not Update.READ_ONLY


def is_secret(name: str) -> bool:
    """Whether this is a listener setting whose value is never shown or stored."""
    setting = listener_setting(name)
    return setting is not None and setting.sensitive


def without_mechanism(name: str) -> str | None:
    """The name, if it is a login configuration without a mechanism, which would be
    ignored; else None.
    """
    match = _PREFIXED.fullmatch(name.lower())
    is_login = name == "sasl.jaas.config" or (
        match is not None and match["name"] == "sasl.jaas.config"
    )
    return name if is_login and (match is None or match["mechanism"] is None) else None


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The security settings of a listener, with their full names for error messages."""

    listener: str
    protocol: SecurityProtocol
    texts: Mapping[str, str]
    """All settings of the broker, including other listeners' and secrets."""

    def __repr__(self) -> str:
        return f"ListenerSecurity({self.listener}, {self.protocol})"

    @property
    def uses_tls(self) -> bool:
        return self.protocol in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}

    def config(self, mechanism: str | None = None) -> SecurityConfig:
        """The effective settings of the listener, or of one of its mechanisms."""
        found = {name: self.texts[name] for name in settings(SecurityConfig) if name in self.texts}
        for prefix in self._prefixes(mechanism):
            for name, text in self.texts.items():
                if name.lower().startswith(prefix):
                    found[name.lower().removeprefix(prefix)] = text
        return load(SecurityConfig, found)

    def name(self, setting: str, mechanism: str | None = None) -> str:
        """The full name under which a setting of this listener was given."""
        for prefix in reversed(self._prefixes(mechanism)):
            if any(each.lower() == prefix + setting for each in self.texts):
                return prefix + setting
        return setting

    def has_own(self, setting: str) -> bool:
        """Whether the setting was given for this listener itself."""
        return self.name(setting) != setting

    def _prefixes(self, mechanism: str | None) -> tuple[str, ...]:
        listener = f"listener.name.{self.listener.lower()}."
        return (listener,) if mechanism is None else (listener, f"{listener}{mechanism.lower()}.")
