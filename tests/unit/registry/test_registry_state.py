"""The meaning of the topic's records, and which records a request writes."""

import json
from typing import Any

import pytest

from penstock.registry import changes
from penstock.registry.changes import RegisteredVersion, Registration
from penstock.registry.errors import RegistryError
from penstock.registry.parsing import Parser
from penstock.registry.records import (
    ConfigKey,
    DeleteSubjectKey,
    ModeKey,
    NoopKey,
    RegistryRecord,
    SchemaKey,
    UnreadableRecord,
    read_record,
)
from penstock.registry.schema import Reference, Schema, SchemaType
from penstock.registry.state import RegistryState, referenced


class Registry:
    """A state whose changes are written and read back as bytes."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.parse = Parser(lambda: self.state)
        self.log: list[tuple[bytes, bytes | None]] = []

    def write(self, *records: RegistryRecord) -> None:
        for each in records:
            self.log.append(each.encoded())
            self.state.replay(read_record(*self.log[-1]))

    def register(self, subject: str, text: str, **given: Any) -> RegisteredVersion:
        references = given.pop("references", ())
        schema = Schema(text, given.pop("kind", SchemaType.AVRO), references)
        parsed = self.parse(schema)
        schema = Schema(parsed.canonical, schema.type, references)
        found = changes.register(
            self.state, Registration(subject, schema, parsed, **given), self.parse
        )
        self.write(*found.records)
        return found

    def delete(self, subject: str, number: int, *, permanent: bool = False) -> None:
        found = self.state.version(subject, number)
        assert found is not None
        self.write(*changes.delete_version(self.state, found, permanent=permanent).records)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        done = changes.delete_subject(self.state, subject, permanent=permanent)
        self.write(*done.records)
        return done.versions

    def compacted(self) -> RegistryState:
        """The state of an instance that starts after compaction has removed as much as it may."""
        latest = {key: (at, value) for at, (key, value) in enumerate(self.log)}
        state = RegistryState()
        for key, (_, value) in sorted(latest.items(), key=lambda each: each[1][0]):
            if value is not None:
                state.replay(read_record(key, value))
        return state


def record(*names: str) -> str:
    fields = [{"name": each, "type": "int", "default": 0} for each in names]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def refused(code: int) -> Any:
    return pytest.raises(RegistryError, check=lambda error: error.code == code)


def test_a_schema_has_one_id_in_all_subjects_and_versions_count_by_subject() -> None:
    registry = Registry()
    assert registry.register("a", record("x"))[1:] == (1, 1)
    assert registry.register("b", record("y"))[1:] == (2, 1)
    assert registry.register("b", record("x"))[1:] == (1, 2)
    again = registry.register(
        "a", '{ "name":"r", "type":"record", "fields":[{"type":"int","name":"x","default":0}]}'
    )
    assert again == ((), 1, 1)
    assert [each.subject for each in registry.state.holders(1)] == ["a", "b"]


def test_the_records_equal_those_of_confluent_byte_by_byte() -> None:
    registry = Registry()
    registry.register("s", '"string"')
    registry.write(changes.set_level(registry.state, None, "FULL"))
    registry.write(changes.set_mode(registry.state, "s", "READWRITE", force=False))
    registry.delete_subject("s")
    assert registry.log == [
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"subject":"s","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', b'{"compatibilityLevel":"FULL"}'),
        (b'{"keytype":"MODE","subject":"s","magic":0}', b'{"mode":"READWRITE"}'),
        (
            b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
            b'{"subject":"s","version":1}',
        ),
    ]


def test_a_deleted_version_can_be_restored_until_it_is_permanently_deleted() -> None:
    registry = Registry()
    registry.register("s", record("x"))
    registry.register("s", record("x", "y"))
    with refused(40407):
        registry.delete("s", 1, permanent=True)
    registry.delete("s", 1)
    with refused(40406):
        registry.delete("s", 1)
    assert [each.number for each in registry.state.versions("s")] == [2]
    assert registry.state.schema(1) is not None, "consumers still read what it has written"
    assert registry.register("s", record("x"))[1:] == (1, 3)
    registry.delete("s", 1, permanent=True)
    assert [each.number for each in registry.state.all_versions("s")] == [2, 3]


def test_a_deleted_subject_continues_its_versions_and_ids_are_never_reused() -> None:
    registry = Registry()
    registry.register("s", record("x"))
    registry.register("s", record("x", "y"))
    with refused(40405):
        registry.delete_subject("s", permanent=True)
    assert registry.delete_subject("s") == [1, 2]
    with refused(40404):
        registry.delete_subject("s")
    assert registry.register("s", record("x"))[1:] == (1, 3), "the id stays, the version does not"
    assert registry.delete_subject("s") == [3]
    assert registry.delete_subject("s", permanent=True) == [1, 2, 3]
    assert registry.state.subjects() == []
    assert registry.state.schema(2) is None
    assert registry.compacted().last_id == 2
    assert registry.register("s", record("z"))[1:] == (3, 1)


def test_a_start_after_compaction_has_the_same_state() -> None:
    registry = Registry()
    for name in ("a", "b"):
        registry.register(name, record("x"))
        registry.register(name, record("x", name))
    registry.write(changes.set_level(registry.state, "a", "NONE"))
    registry.write(changes.unset_level(registry.state, "a")[0])
    registry.delete_subject("a")
    registry.delete("b", 1)
    registry.register("a", record("z"))
    registry.delete("b", 1, permanent=True)
    again = registry.compacted()
    for name in ("a", "b"):
        assert again.all_versions(name) == registry.state.all_versions(name)
        assert again.level(name) == registry.state.level(name)
    assert again.last_id == registry.state.last_id


def test_fields_written_by_another_registry_are_kept() -> None:
    state = RegistryState()
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    value = {"subject": "s", "version": 1, "id": 7, "md5": "x", "schema": '"int"', "deleted": False}
    value |= {"guid": "g", "ts": 1, "references": None}
    state.replay(read_record(key, json.dumps(value).encode()))
    found = state.version("s", 1)
    assert found is not None
    (deleted,) = changes.delete_version(state, found, permanent=False).records
    assert deleted.value == {**value, "deleted": True}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b"[]", b"{}"),
        (b'{"keytype":"CONTEXT","tenant":"t","context":".","magic":0}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"[]"),
    ],
)
def test_a_record_of_another_format_is_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        read_record(key, value)


def test_a_broken_record_changes_nothing() -> None:
    registry = Registry()
    registry.register("s", record("x"))
    for each in (
        RegistryRecord(SchemaKey("s", 1), {"subject": "s"}),
        RegistryRecord(DeleteSubjectKey("s"), {"subject": "s"}),
    ):
        with pytest.raises(UnreadableRecord):
            registry.state.replay(each)
    assert len(registry.state.versions("s")) == 1


def test_a_schema_that_others_refer_to_cannot_be_deleted() -> None:
    registry = Registry()
    registry.register("inner", '{"type":"enum","name":"a.E","symbols":["X"]}')
    reference = Reference("a.E", "inner", 1)
    outer = '{"type":"record","name":"o","fields":[{"name":"e","type":"a.E"}]}'
    registry.register("outer", outer, references=(reference,))
    assert [each.subject for each in registry.state.users("inner", 1)] == ["outer"]
    with refused(42206):
        registry.delete("inner", 1)
    with refused(42206):
        registry.delete_subject("inner")
    registry.delete_subject("outer")
    registry.delete_subject("inner")
    with refused(42201):
        registry.register("third", outer, references=(reference,))
    with refused(42201):
        registry.register("third", outer)


def test_references_are_listed_before_schemas_that_need_them() -> None:
    registry = Registry()
    registry.register("a", '{"type":"enum","name":"A","symbols":["X"]}')
    to_a = Reference("A", "a", 1)
    registry.register(
        "b", '{"type":"record","name":"B","fields":[{"name":"f","type":"A"}]}', references=(to_a,)
    )
    to_b = Reference("B", "b", 1)
    found = referenced(registry.state, [to_b, to_a, to_b])
    assert [name for name, _ in found] == ["A", "B"]


@pytest.mark.parametrize("mode", ["READONLY", "READONLY_OVERRIDE"])
def test_nothing_changes_in_read_only_mode(mode: str) -> None:
    registry = Registry()
    registry.register("s", record("x"))
    registry.write(changes.set_mode(registry.state, None, mode, force=False))
    assert registry.register("s", record("x")).records == ()
    with refused(42205):
        registry.register("s", record("y"))
    with refused(42205):
        registry.delete("s", 1)
    with refused(42205):
        registry.delete_subject("s")
    with refused(42205):
        changes.set_level(registry.state, "s", "NONE")
    registry.write(changes.set_mode(registry.state, "s", "READWRITE", force=False))
    if mode == "READONLY":
        registry.register("s", record("y"))
    else:
        with refused(42205):
            registry.register("s", record("y"))


def test_import_keeps_the_ids_of_another_registry() -> None:
    registry = Registry()
    with refused(42205):
        registry.register("s", record("x"), id=5)
    registry.write(changes.set_mode(registry.state, None, "IMPORT", force=False))
    with refused(42205):
        registry.register("s", record("x"))
    assert registry.register("s", record("x"), id=5, version=3)[1:] == (5, 3)
    with refused(42205):
        registry.register("t", record("y"), id=5)
    with refused(42205):
        changes.set_mode(registry.state, None, "IMPORT", force=False)
    registry.write(changes.set_mode(registry.state, None, "READWRITE", force=False))
    assert registry.register("t", record("y"))[1:] == (6, 1)


@pytest.mark.parametrize("subject", [":.context:s", "", "a\nb", "__GLOBAL"])
def test_invalid_subjects_are_refused(subject: str) -> None:
    with refused(42208):
        changes.check_subject(subject)


def test_levels_and_modes_are_checked() -> None:
    state = RegistryState()
    with refused(42203):
        changes.set_level(state, None, "SIDEWAYS")
    with refused(42204):
        changes.set_mode(state, None, "SOMETIMES", force=False)
    with refused(40401):
        changes.unset_level(state, "s")
    with refused(40401):
        changes.unset_mode(state, "s")
    assert changes.unset_level(state, None) == (RegistryRecord(ConfigKey(None), None), "BACKWARD")
    assert changes.unset_mode(state, None) == (RegistryRecord(ModeKey(None), None), "READWRITE")


def test_a_noop_of_another_registry_has_no_value() -> None:
    state = RegistryState()
    state.replay(RegistryRecord(NoopKey(), {"lastId": 9}))
    state.replay(RegistryRecord(NoopKey(), None))
    assert state.last_id == 9


@pytest.mark.parametrize("kind", [SchemaType.AVRO, SchemaType.JSON])
def test_half_a_surrogate_pair_is_refused(kind: SchemaType) -> None:
    text = '{"type":"record","name":"r","fields":[],"doc":"\\ud800"}'
    if kind is SchemaType.JSON:
        text = '{"title":"\\ud800"}'
    with pytest.raises(RegistryError, match="surrogate"):
        Registry().register("s", text, kind=kind)
