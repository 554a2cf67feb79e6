"""The version of a position in a stream's checkpoint. Positions of older versions have none."""

from collections.abc import Mapping
from typing import Final

from penstock.errors import ConfigError

KEY: Final = "version"


def refuse_newer(position: Mapping[str, object], known: int) -> None:
    """Raise `ConfigError` for a position that this version would misread."""
    found = position.get(KEY, known)
    if not isinstance(found, int) or found > known:
        raise ConfigError(
            f"the checkpoint was written by a newer version of penstock: its positions have "
            f"version {found}, this one knows up to {known}"
        )
