"""Schemas of a real registry, as the console shows, tests and registers them."""

import asyncio
import json
import urllib.request

import pytest

from penstock.client.address import parse_addresses
from penstock.client.cluster import Client
from penstock.clock import SystemClock
from penstock.console.change import Doing
from penstock.console.changes.schemas import SchemaText, check, register
from penstock.console.jobs import Jobs
from penstock.console.schemas import described
from penstock.errors import ConfigError
from penstock.record_view.registry import SchemaRegistry
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry

pytestmark = pytest.mark.slow


def order(*fields: tuple[str, object, dict[str, object]]) -> str:
    shown = [{"name": name, "type": kind, **more} for name, kind, more in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": shown})


def test_versions_show_their_changes_and_whether_a_schema_is_compatible() -> None:
    ident: tuple[str, object, dict[str, object]] = ("id", "long", {})
    with EmbeddedBroker() as broker, EmbeddedRegistry(broker.bootstrap) as served:
        registry = SchemaRegistry(served.url)
        clock = SystemClock()
        client = Client(parse_addresses(broker.bootstrap))
        doing = Doing(client, Jobs(clock), "alice", registry)

        def wanted(text: str) -> SchemaText:
            return SchemaText(subject="a/b", schema=text)

        first, second = order(ident), order(ident, ("note", "string", {"default": ""}))
        assert "can be the next version" in asyncio.run(check(doing, wanted(first))).message
        done = asyncio.run(register(doing, wanted(first)))
        assert done.page == "/schema?subject=a%2Fb"
        assert "can be the next version" in asyncio.run(check(doing, wanted(second))).message
        asyncio.run(register(doing, wanted(second)))
        found = described(registry, "a/b")
        assert found is not None
        assert [each.version for each in found.versions] == [2, 1]
        assert found.level == "BACKWARD"
        newest, oldest = found.versions
        assert '+      "name": "note",' in newest.diff
        assert not [each for each in newest.diff if each.startswith("-") and "id" in each]
        assert oldest.diff == []
        with pytest.raises(ConfigError, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
            asyncio.run(check(doing, wanted(order(ident, ("must", "string", {})))))
        assert described(registry, "none") is None
        # It is compatible with the latest version, but not with the first one.
        third = wanted(order(ident, ("note", "string", {})))
        assert "can be the next version" in asyncio.run(check(doing, third)).message
        level = json.dumps({"compatibility": "BACKWARD_TRANSITIVE"}).encode()
        asked = urllib.request.Request(f"{served.url}/config/a%2Fb", level, method="PUT")
        with urllib.request.urlopen(asked, timeout=30):
            pass
        with pytest.raises(ConfigError, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
            asyncio.run(check(doing, third))
