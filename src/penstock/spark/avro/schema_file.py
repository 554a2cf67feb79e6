"""Avro schemas in `.avsc` files, as other tools store them."""

from pathlib import Path
from typing import Final

from penstock.errors import ConfigError

SUFFIX: Final = ".avsc"


def schema_text(given: str, directory: Path) -> str:
    """The given schema or, if it is a file name, the file's text."""
    if not given.strip().endswith(SUFFIX):
        return given
    path = directory / given.strip()
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"schema: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"schema: {path}: is not text") from error
