"""The state of the registry: subjects, versions, ids, compatibility levels and modes. Pure.

Every instance replays the same records in the same order, so all have the same state.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

from penstock.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    RegistryRecord,
    SchemaKey,
    UnreadableRecord,
    read_schema,
)
from penstock.registry.schema import Reference, Schema

DEFAULT_LEVEL: Final = "BACKWARD"
DEFAULT_MODE: Final = "READWRITE"
LEVEL: Final = "compatibilityLevel"
MODE: Final = "mode"
LAST_ID: Final = "lastId"


@dataclass(frozen=True, slots=True)
class Version:
    """A schema as a version of a subject; `value` is the whole record value, including fields
    of other registries.
    """

    subject: str
    number: int
    id: int
    schema: Schema
    deleted: bool
    value: dict[str, Any]


@dataclass(slots=True)
class RegistryState:
    """The state; only `replay` changes it."""

    _subjects: dict[str, dict[int, Version]] = field(default_factory=dict)
    _holders: dict[int, dict[tuple[str, int], None]] = field(default_factory=dict)
    """The versions that have an id, including soft-deleted ones."""
    _ids: dict[Schema, int] = field(default_factory=dict)
    _users: dict[tuple[str, int], set[tuple[str, int]]] = field(default_factory=dict)
    """Versions that refer to a version, by that version."""
    _levels: dict[str | None, dict[str, Any]] = field(default_factory=dict)
    _modes: dict[str | None, dict[str, Any]] = field(default_factory=dict)
    last_id: int = 0
    """The highest id ever assigned, even if its schema was deleted."""

    def replay(self, record: RegistryRecord) -> None:
        match record.key:
            case SchemaKey(subject, number):
                if record.value is None:
                    self._remove(subject, number)
                else:
                    self._put(subject, number, record.value)
            case DeleteSubjectKey(subject):
                self._delete_subject(subject, record.value)
            case ClearSubjectKey(subject):
                for each in [v for v in self.all_versions(subject) if v.deleted]:
                    self._remove(subject, each.number)
            case ConfigKey(about):
                _set(self._levels, about, record.value)
            case ModeKey(about):
                _set(self._modes, about, record.value)
            case NoopKey():
                self._keep_last((record.value or {}).get(LAST_ID))
            case _ as never:
                assert_never(never)

    def subjects(self) -> list[str]:
        """All names, including subjects with only soft-deleted versions."""
        return sorted(self._subjects)

    def all_versions(self, subject: str) -> list[Version]:
        """In order, including soft-deleted versions."""
        found = self._subjects.get(subject, {})
        return [found[number] for number in sorted(found)]

    def versions(self, subject: str) -> list[Version]:
        """In order, without soft-deleted versions."""
        return [each for each in self.all_versions(subject) if not each.deleted]

    def version(self, subject: str, number: int) -> Version | None:
        return self._subjects.get(subject, {}).get(number)

    def schema(self, schema_id: int) -> Schema | None:
        for each in self.holders(schema_id):
            return each.schema
        return None

    def holders(self, schema_id: int) -> Iterator[Version]:
        """The versions with this id, including soft-deleted ones."""
        for subject, number in self._holders.get(schema_id, ()):
            yield self._subjects[subject][number]

    def id_of(self, schema: Schema) -> int | None:
        return self._ids.get(schema)

    def users(self, subject: str, number: int) -> list[Version]:
        """The versions that refer to this one, without soft-deleted ones."""
        found = (self.version(*each) for each in sorted(self._users.get((subject, number), ())))
        return [each for each in found if each is not None and not each.deleted]

    def level(self, subject: str | None) -> str | None:
        """The level set for the subject itself; None if there is none."""
        found = self._levels.get(subject, {}).get(LEVEL)
        return found if isinstance(found, str) else None

    def effective_level(self, subject: str | None) -> str:
        return self.level(subject) or self.level(None) or DEFAULT_LEVEL

    def mode(self, subject: str | None) -> str | None:
        found = self._modes.get(subject, {}).get(MODE)
        return found if isinstance(found, str) else None

    def effective_mode(self, subject: str | None) -> str:
        everywhere = self.mode(None)
        if everywhere == "READONLY_OVERRIDE":
            return everywhere
        return self.mode(subject) or everywhere or DEFAULT_MODE

    def _put(self, subject: str, number: int, data: dict[str, Any]) -> None:
        found = read_schema(data)
        self._remove(subject, number)
        schema = Schema(found.schema, found.schemaType, found.references or ())
        version = Version(subject, number, found.id, schema, found.deleted, data)
        self._subjects.setdefault(subject, {})[number] = version
        self._holders.setdefault(found.id, {})[subject, number] = None
        self._ids.setdefault(schema, found.id)
        for each in schema.references:
            self._users.setdefault((each.subject, each.version), set()).add((subject, number))
        self._keep_last(found.id)

    def _remove(self, subject: str, number: int) -> None:
        version = self._subjects.get(subject, {}).pop(number, None)
        if version is None:
            return
        if not self._subjects[subject]:
            del self._subjects[subject]
        del self._holders[version.id][subject, number]
        if not self._holders[version.id]:
            del self._holders[version.id]
            if self._ids.get(version.schema) == version.id:
                del self._ids[version.schema]
        for each in version.schema.references:
            self._users[each.subject, each.version].discard((subject, number))

    def _delete_subject(self, subject: str, data: dict[str, Any] | None) -> None:
        if data is None:
            return  # the versions have tombstones of their own
        last = data.get("version")
        if not isinstance(last, int):
            raise UnreadableRecord("the deletion of a subject has no version")
        for each in self.versions(subject):
            if each.number <= last:
                self._put(subject, each.number, {**each.value, "deleted": True})

    def _keep_last(self, schema_id: object) -> None:
        if isinstance(schema_id, int):
            self.last_id = max(self.last_id, schema_id)


def referenced(
    state: RegistryState, references: Iterable[Reference]
) -> Iterator[tuple[str, Schema]]:
    """The direct and indirect references with their schemas, each before those that need it.

    References to missing versions are left out.
    """
    seen: set[str] = set()

    def walk(wanted: Iterable[Reference]) -> Iterator[tuple[str, Schema]]:
        for each in wanted:
            found = state.version(each.subject, each.version)
            if each.name in seen or found is None:
                continue
            seen.add(each.name)
            yield from walk(found.schema.references)
            yield each.name, found.schema

    yield from walk(references)


def _set(
    settings: dict[str | None, dict[str, Any]], subject: str | None, value: dict[str, Any] | None
) -> None:
    if value is None:
        settings.pop(subject, None)
    else:
        settings[subject] = value
