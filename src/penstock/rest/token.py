"""The token that clients must send, and when none is needed."""

from typing import Final

from penstock.errors import ConfigError
from penstock.http.access import is_loopback

NO_TOKEN: Final = "none"  # noqa: S105  the value that disables it


def checked_token(token: str, host: str, setting: str, without: str = "") -> str | None:
    """The token to require; None if it is disabled, which is allowed only on loopback.

    `without` replaces the setting's value in error messages.
    """
    if not token:
        raise ConfigError(
            f"{setting} is missing: clients that write over HTTP must send a token; "
            f"{without or f'`{NO_TOKEN}`'} turns it off, on loopback only"
        )
    if token != NO_TOKEN:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(f"{setting} must be printable ASCII without spaces")
        return token
    if not is_loopback(host):
        said = without or f"{setting}={NO_TOKEN}"
        raise ConfigError(f"{said} is for loopback only, not for {host or 'all'!r}")
    return None
