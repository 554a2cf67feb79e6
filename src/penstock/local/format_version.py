"""The version of a JSON file of ours, read before anything else of it.

A newer Penstock may have changed whatever stands beside the version.
"""

from pathlib import Path

import msgspec

from penstock.errors import ConfigError


class _Versioned(msgspec.Struct, frozen=True):
    version: int = 1


def refuse_newer(data: msgspec.Raw | bytes, path: Path, known: int) -> None:
    """Raises `msgspec.DecodeError` for what is no such file."""
    found = msgspec.json.decode(data, type=_Versioned).version
    if found > known:
        raise ConfigError(
            f"{path} was written by a newer version of penstock: it has version {found}, this one "
            f"knows up to {known}"
        )
