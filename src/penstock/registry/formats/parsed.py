"""What the registry asks of a schema language."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Imported: TypeAlias = Sequence[tuple[str, str]]
"""Names and texts of the schemas that are referred to, each before those that need it."""


class BrokenSchema(ValueError):
    """The text is not a schema of its type; the message says why."""


class ParsedSchema(Protocol):
    """A schema that was understood. All its methods are pure."""

    @property
    def canonical(self) -> str:
        """The text that is stored: the same for schemas that differ in white space only."""

    def normalized(self) -> str:
        """The same for schemas that mean the same."""

    def formatted(self, name: str) -> str | None:
        """The text in another format, such as Protobuf's `serialized`; None: not known."""

    def cannot_read(self, writer: "ParsedSchema") -> list[str]:
        """Why data of `writer`, a schema of the same type, may be unreadable; empty: it is not."""
