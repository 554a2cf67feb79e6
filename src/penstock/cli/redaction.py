"""Hides secrets in settings and in texts. Pure."""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "[hidden]"
SECRET: Final = (
    "password",
    "passwd",
    "jaas",
    "secret",
    "keystore.key",
    "key.pem",
    "token",
    "credential",
    "user.info",
)
_IN_TEXT: Final = re.compile(
    r"""(?ix)
    ( (?: password | passwd | secret | token | credential | user\.info | authorization )
      [\w.\-]* ["']? \s* [=:] \s* )
    ( " (?: \\. | [^"\\] )* " | ' (?: \\. | [^'\\] )* ' | (?: (?:Bearer|Basic)\s+ )? [^\s,;]+ )
    """
)
_JAAS: Final = re.compile(r"(?i)(sasl\.jaas\.config[\"']?\s*[=:]\s*).*")
_IN_URL: Final = re.compile(r"(://[^/\s:@]*:)[^@\s]+@")
_KEY: Final = re.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)")


def redacted_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        name: HIDDEN if any(each in name.lower() for each in SECRET) else redacted_text(text)
        for name, text in sorted(settings.items())
    }


def redacted_text(text: str) -> str:
    text = _KEY.sub(rf"\1{HIDDEN}\2", text)
    text = _JAAS.sub(rf"\1{HIDDEN}", text)
    text = _IN_TEXT.sub(rf"\1{HIDDEN}", text)
    return _IN_URL.sub(rf"\1{HIDDEN}@", text)
