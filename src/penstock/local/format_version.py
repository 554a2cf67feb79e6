"""The version of one of our JSON files, read before the rest of it.

A newer Penstock may have changed every other field.
"""

from pathlib import Path

import msgspec

from penstock.errors import ConfigError


class _Versioned(msgspec.Struct, frozen=True):
    version: int = 1


def refuse_newer(data: msgspec.Raw | bytes, path: Path, known: int) -> None:
    """Raise `ConfigError` for a newer version, `msgspec.DecodeError` for data without a version."""
    found = msgspec.json.decode(data, type=_Versioned).version
    if found > known:
        raise ConfigError(
            f"{path} was written by a newer version of penstock: it has version {found}, this one "
            f"knows up to {known}"
        )
