"""Hints for settings under old or misspelt names: which one is meant today."""

import sys
from collections.abc import Iterable
from typing import Final

from penstock.config.old_names import OLD_NAMES

OLD_RESETS: Final = {"smallest": "earliest", "largest": "latest"}
"""Values of `auto.offset.reset`."""


def hint(names: Iterable[str], about: str) -> None:
    """Say on standard error which settings have another name today."""
    for name in names:
        if name in OLD_NAMES:
            print(
                f"{about}: {name} is not a setting; did you mean {OLD_NAMES[name]}?",
                file=sys.stderr,
            )
