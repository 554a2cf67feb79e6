"""What a checker finds."""

from typing import NamedTuple


class Violation(NamedTuple):
    """A promise that was broken, and what shows it."""

    kind: str
    what: str
