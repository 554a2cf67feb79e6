"""Reads the file with the identity provider. Needs none of the provider's libraries."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.config.extra import install
from penstock.config.oidc import OidcConfig, parse_oidc
from penstock.errors import ConfigError

LIBRARIES: Final = ("jwt", "cryptography")


def read_oidc(file: Path, name: str) -> OidcConfig:
    """`name` is the option or the setting that names the file.

    Nothing is imported: a broker asks too, before it starts the console as a process of its own.
    """
    for each in LIBRARIES:
        if find_spec(each) is None:
            raise ConfigError(f"{name} needs {each}: {install('oauth')}")
    try:
        text = file.read_text()
    except OSError as error:
        raise ConfigError(f"{name} {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name} {file}: is not text") from None
    return parse_oidc(text, str(file))
