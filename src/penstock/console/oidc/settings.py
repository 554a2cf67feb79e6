"""Reads the file that configures the identity provider. Does not need the optional libraries."""

from importlib.util import find_spec
from pathlib import Path
from typing import Final

from penstock.config.extra import install
from penstock.config.oidc import OidcConfig, parse_oidc
from penstock.errors import ConfigError

LIBRARIES: Final = ("jwt", "cryptography")


def read_oidc(file: Path, name: str) -> OidcConfig:
    """Read and check the file; `name` is the option or setting that names it.

    Only the presence of the libraries is checked, without importing them: a broker calls this too,
    before it starts the console as a separate process.
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
