"""How the registry finds the id of a schema."""

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.client.cluster import Client
from penstock.registry import parsing
from penstock.registry.api import Asked, RegistryAnswer, look_up
from penstock.registry.election import Identity
from penstock.registry.errors import RegistryError
from penstock.registry.parsing import REMEMBERED, Parser
from penstock.registry.records import DeleteSubjectKey, RegistryRecord, SchemaKey, schema_value
from penstock.registry.schema import Schema, SchemaType
from penstock.registry.service import RegistryService
from penstock.registry.state import RegistryState
from penstock.registry.topic import SchemaLog
from penstock.types import Offset

TEXT = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'


class Service:
    """A state that counts how often a schema had to be parsed."""

    def __init__(self, *texts: str) -> None:
        self.state, self.reads = RegistryState(), 0
        for number, text in enumerate(texts, 1):
            value = schema_value("s", number, 70 + number, Schema(text, SchemaType.AVRO, ()))
            self.state.replay(RegistryRecord(SchemaKey("s", number), value))

    async def read(self, ask: Any) -> Any:
        self.reads += 1
        return ask(self.state, Parser(lambda: self.state))

    def look_up(self, text: str, **query: str) -> dict[str, Any]:
        asked = Asked({"subject": "s"}, query, json.dumps({"schema": text}).encode())
        answer: RegistryAnswer = asyncio.run(look_up(cast("RegistryService", self), asked))
        return cast("dict[str, Any]", answer.json)


def test_a_schema_with_the_stored_text_is_found_without_parsing() -> None:
    service = Service('"long"', TEXT)
    assert service.look_up(TEXT)["id"] == 72
    assert service.reads == 0
    assert service.look_up(TEXT.replace(":", ": "))["id"] == 72
    assert service.look_up(TEXT, normalize="true")["id"] == 72
    assert service.reads == 2


def test_an_unknown_schema_is_refused() -> None:
    service = Service(TEXT)
    with pytest.raises(RegistryError) as refused:
        service.look_up('"string"')
    assert refused.value.code == 40403


def test_versions_that_cannot_be_parsed_are_skipped() -> None:
    """Another registry accepted them."""
    service = Service(TEXT, '{"type":"record"}')
    assert service.look_up(TEXT.replace(":", ": "))["id"] == 71
    with pytest.raises(RegistryError) as refused:
        service.look_up('"string"')
    assert refused.value.code == 40403


def test_a_deleted_subject_is_found_only_if_deleted_ones_are_requested() -> None:
    service = Service(TEXT)
    service.state.replay(RegistryRecord(DeleteSubjectKey("s"), {"subject": "s", "version": 1}))
    with pytest.raises(RegistryError) as refused:
        service.look_up('"string"')
    assert refused.value.code == 40401
    with pytest.raises(RegistryError) as refused:
        service.look_up('"string"', deleted="true")
    assert refused.value.code == 40403
    assert service.look_up(TEXT, deleted="true")["id"] == 71


def test_a_frequently_used_schema_stays_cached() -> None:
    parse = Parser(RegistryState)
    often = Schema(TEXT, SchemaType.AVRO, ())
    first = parse(often)
    for number in range(REMEMBERED + 10):
        parse(
            Schema(json.dumps({"type": "fixed", "name": f"F{number}", "size": 1}), often.type, ())
        )
        assert parse(often) is first


def test_long_schemas_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may read may ask whether a schema is compatible, as often as it likes."""
    monkeypatch.setattr(parsing, "REMEMBERED_CHARS", 1_000)
    parse = Parser(RegistryState)
    schemas = [
        Schema(json.dumps({"type": "fixed", "name": f"F{number}" + 300 * "x", "size": 1}))
        for number in range(4)
    ]
    first = [parse(each) for each in schemas]
    assert parse(schemas[3]) is first[3]
    assert parse(schemas[0]) is not first[0]


def test_a_change_waits_for_one_question_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large schemas take seconds, and every viewer may ask about them."""
    own, done = Identity("localhost", 1), list[str]()

    async def leader(_: RegistryService) -> Identity:
        return own

    async def append(log: SchemaLog, _: object) -> Offset:
        """The change is replayed before it is answered."""
        await asyncio.sleep(0.05)
        async with log.changing:
            done.append("replay")
        return Offset(1)

    async def main() -> None:
        client = cast("Client", SimpleNamespace(twin=lambda: None))
        service = RegistryService(client, own)
        go_on = threading.Event()

        def question(*_: object) -> None:
            go_on.wait(10)
            done.append("question")

        def decision(*_: object) -> tuple[list[RegistryRecord], None]:
            done.append("change")
            return [RegistryRecord(DeleteSubjectKey("s"), None)], None

        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            for _ in range(5):
                tasks.create_task(service.read(question))
            await asyncio.sleep(0)
            tasks.create_task(service.change(decision))
            for _ in range(5):
                await asyncio.sleep(0)
            go_on.set()

    monkeypatch.setattr(RegistryService, "_known_leader", leader)
    monkeypatch.setattr(SchemaLog, "is_writer", property(lambda _: True))
    monkeypatch.setattr(SchemaLog, "append", append)
    asyncio.run(main())
    assert done[:3] == ["question", "change", "replay"]
