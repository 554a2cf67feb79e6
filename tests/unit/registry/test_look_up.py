"""How the registry finds the id of a schema."""

import asyncio
import json
from typing import Any, cast

import pytest

from penstock.registry.api import Answer, Asked, look_up
from penstock.registry.errors import RegistryError
from penstock.registry.parsing import REMEMBERED, Parser
from penstock.registry.records import DeleteSubjectKey, Record, SchemaKey, schema_value
from penstock.registry.schema import Schema, SchemaType
from penstock.registry.service import RegistryService
from penstock.registry.state import RegistryState

TEXT = '{"type":"record","name":"R","fields":[{"name":"a","type":"long"}]}'


class Service:
    """A state that counts how often a schema had to be parsed."""

    def __init__(self, *texts: str) -> None:
        self.state, self.reads = RegistryState(), 0
        for number, text in enumerate(texts, 1):
            value = schema_value("s", number, 70 + number, Schema(text, SchemaType.AVRO, ()))
            self.state.replay(Record(SchemaKey("s", number), value))

    async def read(self, ask: Any) -> Any:
        self.reads += 1
        return ask(self.state, Parser(lambda: self.state))

    def look_up(self, text: str, **query: str) -> dict[str, Any]:
        asked = Asked({"subject": "s"}, query, json.dumps({"schema": text}).encode())
        answer: Answer = asyncio.run(look_up(cast("RegistryService", self), asked))
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
    service.state.replay(Record(DeleteSubjectKey("s"), {"subject": "s", "version": 1}))
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
