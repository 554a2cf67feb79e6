"""Compatibility levels: the earlier versions to compare with, and in which direction. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from penstock.registry.errors import RegistryError
from penstock.registry.formats.parsed import BrokenSchema, ParsedSchema
from penstock.registry.schema import Schema
from penstock.registry.state import Version

Parse: TypeAlias = Callable[[Schema], ParsedSchema]
"""Parses a schema together with its references."""


class CompatibilityLevel(NamedTuple):
    """The guarantees of a compatibility level for a new version."""

    reads_old: bool
    """Backward: the new version can read data of earlier versions."""
    read_by_old: bool
    """Forward: earlier versions can read data of the new version."""
    all_versions: bool
    """Transitive: all earlier versions, not only the latest."""


LEVELS: Final = {
    "NONE": CompatibilityLevel(reads_old=False, read_by_old=False, all_versions=False),
    "BACKWARD": CompatibilityLevel(reads_old=True, read_by_old=False, all_versions=False),
    "BACKWARD_TRANSITIVE": CompatibilityLevel(reads_old=True, read_by_old=False, all_versions=True),
    "FORWARD": CompatibilityLevel(reads_old=False, read_by_old=True, all_versions=False),
    "FORWARD_TRANSITIVE": CompatibilityLevel(reads_old=False, read_by_old=True, all_versions=True),
    "FULL": CompatibilityLevel(reads_old=True, read_by_old=True, all_versions=False),
    "FULL_TRANSITIVE": CompatibilityLevel(reads_old=True, read_by_old=True, all_versions=True),
}


def compared(level: str, versions: Sequence[Version]) -> Sequence[Version]:
    """The versions to compare with, newest first."""
    newest_first = versions[::-1]
    return newest_first if LEVELS[level].all_versions else newest_first[:1]


def incompatibilities(
    level: str, new: Schema, parsed: ParsedSchema, versions: Iterable[Version], parse: Parse
) -> list[str]:
    """Why the schema must not follow these versions; empty if it may."""
    promise = LEVELS[level]
    if not (promise.reads_old or promise.read_by_old):
        return []
    for each in versions:
        if each.schema.type is not new.type:
            was, now = each.schema.type.value, new.type.value
            return [f"{{oldSchemaVersion: {each.number}}}", f"the type was {was}, now is {now}"]
        reasons = _compared(promise, parsed, each.schema, parse)
        if reasons:
            about = [
                f"{{oldSchemaVersion: {each.number}}}",
                f"{{oldSchema: '{each.schema.text}'}}",
                f"{{compatibility: '{level}'}}",
            ]
            return [*reasons, *about]
    return []


def _compared(
    promise: CompatibilityLevel, new: ParsedSchema, old_schema: Schema, parse: Parse
) -> list[str]:
    try:
        old = parse(old_schema)
    except RegistryError as error:  # another registry accepted it
        return [f"the earlier schema is not understood: {error}"]
    try:
        reasons = new.cannot_read(old) if promise.reads_old else []
        return reasons + (old.cannot_read(new) if promise.read_by_old else [])
    except (BrokenSchema, RecursionError) as error:
        return [f"the schemas cannot be compared: {error}"]
