"""Parses the login in a client's `sasl.jaas.config`, which was often written for another client.

It is lenient, as Java is: login modules of any package are accepted, and the last of repeated
options wins. No error quotes the text, because it holds a password.
"""

from typing import Final

from penstock.client.sasl import OAUTHBEARER, Login
from penstock.config.jaas import jaas_options, jaas_tokens
from penstock.errors import ConfigError

_MODULES: Final = {
    "PlainLoginModule": ("PLAIN",),
    "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
    "OAuthBearerLoginModule": (OAUTHBEARER,),
}


def parse_jaas(text: str, mechanism: str, prefix: str = "") -> Login:
    """The login in `text`, for this mechanism; messages put `prefix` before settings."""
    options = login_options(text, mechanism, prefix)
    for needed in ("username", "password"):
        if needed not in options:
            raise ConfigError(f"{prefix}sasl.jaas.config has no {needed}")
    is_token = options.get("tokenauth", "").lower() == "true"
    return Login(mechanism, options["username"], options["password"], is_token=is_token)


def login_options(text: str, mechanism: str, prefix: str = "") -> dict[str, str]:
    """The options of the login module in `text`, which must be for this mechanism."""
    setting = f"{prefix}sasl.jaas.config"
    instead = f"; write {prefix}sasl.username and {prefix}sasl.password instead"
    tokens = jaas_tokens(setting, text)
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
    return jaas_options(setting, tokens, repeatable=True)
