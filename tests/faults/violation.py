"""The result of a checker."""

from typing import NamedTuple


class Violation(NamedTuple):
    """A broken promise, and the evidence."""

    kind: str
    what: str
