"""Parses the address of an HTTP server: `host:port`."""

import re
from typing import Final, NamedTuple

from penstock.config.setting import Form
from penstock.errors import ConfigError

PORT: Final = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
LISTEN_FORM: Final = Form(rf"([^\s\[\]:/]*|\[[0-9A-Fa-f:.%]+\]):({PORT})|", "host:port, or empty")


class HttpAddress(NamedTuple):
    """An empty host means every interface; port 0 means a free port."""

    host: str
    port: int


def http_address(text: str, setting: str) -> HttpAddress:
    """The address in a non-empty setting; errors name `setting`."""
    found = re.fullmatch(LISTEN_FORM.pattern, text)
    if not text or found is None:
        raise ConfigError(f"{setting} is {text!r}, must be host:port")
    return HttpAddress(found[1].strip("[]"), int(found[2]))
