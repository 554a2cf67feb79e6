"""The interface that the registry needs of each schema language."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

Imported: TypeAlias = Sequence[tuple[str, str]]
"""Names and texts of the referenced schemas, each before those that need it."""


class BrokenSchema(ValueError):
    """The text is not a schema of its type; the message says why."""


class ParsedSchema(Protocol):
    """A parsed schema. All its methods are pure."""

    @property
    def canonical(self) -> str:
        """The text to store: equal for schemas that differ only in white space."""

    def normalized(self) -> str:
        """A text that is equal for schemas with the same meaning."""

    def formatted(self, name: str) -> str | None:
        """The text in another format, such as Protobuf's `serialized`; None if that is unknown."""

    def cannot_read(self, writer: "ParsedSchema") -> list[str]:
        """Why data of `writer`, of the same type, may be unreadable; empty if all is readable."""
