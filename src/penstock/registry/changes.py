"""Decides what a request changes: the records to write, and the response. Pure.

An operation reads the state and decides; the state changes only when its records are replayed.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from penstock.registry import errors
from penstock.registry.compatibility import LEVELS, Parse, compared, incompatibilities
from penstock.registry.errors import RegistryError
from penstock.registry.formats.parsed import ParsedSchema
from penstock.registry.records import (
    ConfigKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    RegistryRecord,
    SchemaKey,
    schema_value,
)
from penstock.registry.schema import Schema
from penstock.registry.state import LAST_ID, LEVEL, MODE, RegistryState, Version

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
MAX_ID: Final = (1 << 31) - 1


class RegisteredVersion(NamedTuple):
    """The id and version of a schema, and the records to write; none if it is registered."""

    records: tuple[RegistryRecord, ...]
    id: int
    version: int


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema to register. Only in mode IMPORT the client gives the id, maybe also the version."""

    subject: str
    schema: Schema
    """Has the canonical text."""
    parsed: ParsedSchema
    id: int | None = None
    version: int | None = None


def register(state: RegistryState, asked: Registration, parse: Parse) -> RegisteredVersion:
    check_subject(asked.subject)
    mode = state.effective_mode(asked.subject)
    _check_references(state, asked.schema)
    known = find(state, asked.subject, asked.schema, asked.parsed, parse)
    if known is not None and asked.id in {None, known.id}:
        return RegisteredVersion((), known.id, known.number)
    if mode == "IMPORT":
        return _imported(state, asked)
    check_writable(state, asked.subject)
    if asked.id is not None:
        raise errors.not_permitted(f"Subject {asked.subject} is not in import mode")
    level = state.effective_level(asked.subject)
    earlier = compared(level, state.versions(asked.subject))
    reasons = incompatibilities(level, asked.schema, asked.parsed, earlier, parse)
    if reasons:
        raise errors.incompatible(asked.subject, reasons)
    schema_id = state.id_of(asked.schema)
    if schema_id is None:
        schema_id = state.last_id + 1
        if schema_id > MAX_ID:
            raise errors.not_permitted("All ids have been given")
    return _added(asked, schema_id, _next_version(state, asked.subject))


def find_exact(
    state: RegistryState, subject: str, schema: Schema, *, deleted: bool = False
) -> Version | None:
    """The newest version with exactly this text."""
    there = state.all_versions(subject) if deleted else state.versions(subject)
    return next((each for each in reversed(there) if each.schema == schema), None)


def find(
    state: RegistryState,
    subject: str,
    schema: Schema,
    parsed: ParsedSchema,
    parse: Parse,
    *,
    deleted: bool = False,
) -> Version | None:
    """The newest version with this schema."""
    same = find_exact(state, subject, schema, deleted=deleted)
    if same is not None:
        return same
    there = state.all_versions(subject) if deleted else state.versions(subject)
    for each in reversed(there):
        # Another registry may have stored a different text of the same schema, so compare the
        # canonical forms.
        same_kind = each.schema.type is schema.type and each.schema.references == schema.references
        if same_kind and _canonical(each.schema, parse) == parsed.canonical:
            return each
    return None


def _canonical(schema: Schema, parse: Parse) -> str | None:
    """None if another registry accepted a schema that this one cannot parse."""
    try:
        return parse(schema).canonical
    except RegistryError:
        return None


class Deleted(NamedTuple):
    """The records of a deletion, and the numbers of the deleted versions."""

    records: tuple[RegistryRecord, ...]
    versions: list[int]


def delete_subject(state: RegistryState, subject: str, *, permanent: bool) -> Deleted:
    check_writable(state, subject)
    alive, there = state.versions(subject), state.all_versions(subject)
    if not there:
        raise errors.subject_not_found(subject)
    for each in alive:
        check_unused(state, subject, each.number)
    if permanent:
        if alive:
            raise errors.subject_not_soft_deleted(subject)
        gone: list[RegistryRecord] = [
            RegistryRecord(SchemaKey(subject, each.number), None) for each in there
        ]
        gone.append(RegistryRecord(DeleteSubjectKey(subject), None))
        if state.level(subject) is not None:
            gone.append(RegistryRecord(ConfigKey(subject), None))
        if state.mode(subject) is not None:
            gone.append(RegistryRecord(ModeKey(subject), None))
        return Deleted((kept_last_id(state), *gone), [each.number for each in there])
    if not alive:
        raise errors.subject_soft_deleted(subject)
    value = {"subject": subject, "version": alive[-1].number}
    return Deleted(
        (RegistryRecord(DeleteSubjectKey(subject), value),), [each.number for each in alive]
    )


def delete_version(state: RegistryState, found: Version, *, permanent: bool) -> Deleted:
    subject, number = found.subject, found.number
    check_writable(state, subject)
    check_unused(state, subject, number)
    key = SchemaKey(subject, number)
    if permanent:
        if not found.deleted:
            raise errors.version_not_soft_deleted(subject, number)
        return Deleted((kept_last_id(state), RegistryRecord(key, None)), [number])
    if found.deleted:
        raise errors.version_soft_deleted(subject, number)
    return Deleted((RegistryRecord(key, {**found.value, "deleted": True}),), [number])


def set_level(state: RegistryState, subject: str | None, level: str) -> RegistryRecord:
    if subject is not None:
        check_subject(subject)
    if level not in LEVELS:
        raise errors.invalid_level()
    check_writable(state, subject)
    return RegistryRecord(ConfigKey(subject), {LEVEL: level})


def unset_level(state: RegistryState, subject: str | None) -> tuple[RegistryRecord, str]:
    check_writable(state, subject)
    level = state.level(subject)
    if level is None and subject is not None:
        raise errors.subject_not_found(subject)
    return RegistryRecord(ConfigKey(subject), None), level or state.effective_level(None)


def set_mode(
    state: RegistryState, subject: str | None, mode: str, *, force: bool
) -> RegistryRecord:
    if subject is not None:
        check_subject(subject)
    if mode not in MODES:
        raise errors.invalid_mode()
    if mode == "IMPORT" and not force:
        taken = state.subjects() if subject is None else state.all_versions(subject)
        if taken:
            raise errors.not_permitted("Cannot import since found existing subjects")
    return RegistryRecord(ModeKey(subject), {MODE: mode})


def unset_mode(state: RegistryState, subject: str | None) -> tuple[RegistryRecord, str]:
    mode = state.mode(subject)
    if mode is None and subject is not None:
        raise errors.subject_not_found(subject)
    return RegistryRecord(ModeKey(subject), None), mode or state.effective_mode(None)


def kept_last_id(state: RegistryState) -> RegistryRecord:
    """A record that preserves the last id, because compaction removes the schema that had it."""
    return RegistryRecord(NoopKey(), {LAST_ID: state.last_id})


def check_subject(subject: str) -> None:
    if subject.startswith(":."):
        raise errors.invalid_subject(subject, "contexts are not supported")
    if not subject or any(ord(each) < 0x20 or ord(each) == 0x7F for each in subject):
        raise errors.invalid_subject(subject, "it is empty or has control characters")
    if subject in {"__GLOBAL", "__EMPTY"}:
        raise errors.invalid_subject(subject, "the name is reserved")


def check_writable(state: RegistryState, subject: str | None) -> None:
    if state.effective_mode(subject) in {"READONLY", "READONLY_OVERRIDE"}:
        about = "Subject" if subject is None else f"Subject {subject}"
        raise errors.not_permitted(f"{about} is in read-only mode")


def check_unused(state: RegistryState, subject: str, number: int) -> None:
    if state.users(subject, number):
        raise errors.reference_exists(subject, number)


def _check_references(state: RegistryState, schema: Schema) -> None:
    for each in schema.references:
        found = state.version(each.subject, each.version)
        if found is None or found.deleted:
            raise errors.invalid_schema(
                f"no schema reference found for subject '{each.subject}' and version {each.version}"
            )


def _imported(state: RegistryState, asked: Registration) -> RegisteredVersion:
    """Register with a given id, for a client that copies a registry; checks no compatibility."""
    if asked.id is None:
        raise errors.not_permitted(f"Subject {asked.subject} is in import mode")
    if not 0 < asked.id <= MAX_ID:
        raise errors.not_permitted(f"The id {asked.id} is not between 1 and {MAX_ID}")
    there = state.schema(asked.id)
    if there is not None and there != asked.schema:
        raise errors.not_permitted(f"Overwrite new schema with id {asked.id} is not permitted.")
    version = asked.version or _next_version(state, asked.subject)
    taken = state.version(asked.subject, version)
    if taken is not None and taken.id != asked.id:
        raise errors.not_permitted(f"Version {version} of {asked.subject} has another id")
    return _added(asked, asked.id, version)


def _next_version(state: RegistryState, subject: str) -> int:
    there = state.all_versions(subject)
    return there[-1].number + 1 if there else 1


def _added(asked: Registration, schema_id: int, version: int) -> RegisteredVersion:
    value = schema_value(asked.subject, version, schema_id, asked.schema)
    record = RegistryRecord(SchemaKey(asked.subject, version), value)
    return RegisteredVersion((record,), schema_id, version)
