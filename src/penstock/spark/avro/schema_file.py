"""Schemas of Avro in files, as other languages' tools keep them."""

from pathlib import Path
from typing import Final

from penstock.errors import ConfigError

SUFFIX: Final = ".avsc"


def schema_text(given: str, directory: Path) -> str:
    """A schema as it was given or, for the name of a file, what is in there."""
    if not given.strip().endswith(SUFFIX):
        return given
    path = directory / given.strip()
    try:
        return path.read_text()
    except OSError as error:
        raise ConfigError(f"schema: {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"schema: {path}: is no text") from error
