"""Read-only answers of the registry. Pure."""

from typing import Any

from penstock.registry import errors
from penstock.registry.compatibility import Parse, compared, incompatibilities
from penstock.registry.schema import Schema, SchemaType
from penstock.registry.state import RegistryState, Version

MAX_VERSION = (1 << 31) - 1


def version_number(text: str) -> int | None:
    """The version number in a path; None means the latest."""
    if text in {"latest", "-1"}:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) < 12
    if not (is_number and 0 < int(text) <= MAX_VERSION):
        raise errors.invalid_version(text[:100])
    return int(text)


def find_version(
    state: RegistryState, subject: str, text: str, *, deleted: bool = False
) -> Version:
    """The version that a path names; 40401 or 40402 if it does not exist."""
    number = version_number(text)
    there = state.all_versions(subject) if deleted else state.versions(subject)
    if not there:
        raise errors.subject_not_found(subject)
    if number is None:
        return there[-1]
    for each in there:
        if each.number == number:
            return each
    raise errors.version_not_found(number)


def described(schema: Schema, text: str | None = None) -> dict[str, Any]:
    """A schema as JSON. The type is left out for Avro, which clients assume."""
    found: dict[str, Any] = {}
    if schema.type is not SchemaType.AVRO:
        found["schemaType"] = schema.type.value
    if schema.references:
        found["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version}
            for each in schema.references
        ]
    found["schema"] = schema.text if text is None else text
    return found


def described_version(version: Version, text: str | None = None) -> dict[str, Any]:
    about = {"subject": version.subject, "version": version.number, "id": version.id}
    deleted = {"deleted": True} if version.deleted else {}
    return {**about, **described(version.schema, text), **deleted}


def formatted(schema: Schema, name: str, parse: Parse) -> str:
    """The text in a requested format, such as Protobuf's `serialized`."""
    found = parse(schema).formatted(name) if name else schema.text
    if found is None:
        raise errors.invalid_schema(f"{schema.type.value} has no format {name!r}")
    return found


def check_compatible(
    state: RegistryState, subject: str, text: str | None, schema: Schema, parse: Parse
) -> list[str]:
    """Why the schema cannot follow version `text`, or the versions that the subject's level
    compares with if `text` is None.

    For a subject without versions, `latest` is no error: any first schema is compatible.
    """
    level = state.effective_level(subject)
    parsed = parse(schema)
    if text is None or (version_number(text) is None and not state.versions(subject)):
        versions = compared(level, state.versions(subject))
    else:
        versions = [find_version(state, subject, text)]
    return incompatibilities(level, schema, parsed, versions, parse)
