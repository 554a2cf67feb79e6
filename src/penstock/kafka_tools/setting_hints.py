"""Hints for old or misspelt setting names."""

import sys
from collections.abc import Iterable
from typing import Final

from penstock.config.old_names import OLD_NAMES

OLD_RESETS: Final = {"smallest": "earliest", "largest": "latest"}
"""Old values of `auto.offset.reset`, and the current ones."""


def hint(names: Iterable[str], about: str) -> None:
    """Print to standard error which settings have another name today."""
    for name in names:
        if name in OLD_NAMES:
            print(
                f"{about}: {name} is not a setting; did you mean {OLD_NAMES[name]}?",
                file=sys.stderr,
            )
