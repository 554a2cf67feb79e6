"""The token that a client must send, and when none is needed."""

from typing import Final

from penstock.errors import ConfigError
from penstock.http.access import is_loopback

NO_TOKEN: Final = "none"  # noqa: S105 - a word for its absence


def checked_token(token: str, host: str, setting: str, without: str = "") -> str | None:
    """None: no token is asked for. Without one only this machine may write.

    `without` is what a message says instead of the word.
    """
    if not token:
        raise ConfigError(
            f"{setting} is missing: whoever writes over HTTP must send a token; "
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
