"""The registry on Apache Kafka writes, restarts, elects and reads as it does on Penstock."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.kafka import KafkaCluster
from penstock.testing.registry import EmbeddedRegistry
from support.registry.rest import rest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    with KafkaCluster(folder=tmp_path) as kafka:
        yield kafka.bootstrap


def enum(name: str) -> dict[str, str]:
    return {"schema": json.dumps({"type": "enum", "name": name, "symbols": ["A"]})}


def test_a_registry_keeps_its_schemas_in_kafka(bootstrap: str) -> None:
    with EmbeddedRegistry(bootstrap) as first, EmbeddedRegistry(bootstrap) as second:
        for number, registry in enumerate((first, second, first), 1):
            found = rest("POST", f"{registry.url}/subjects/s{number}/versions", enum(f"e{number}"))
            assert found == (200, {"id": number})
            assert rest("GET", f"{registry.url}/schemas/ids/{number}")[0] == 200
        assert rest("DELETE", f"{second.url}/subjects/s3") == (200, [1])
        assert rest("DELETE", f"{second.url}/subjects/s3?permanent=true") == (200, [1])
    with EmbeddedRegistry(bootstrap) as again:
        assert rest("GET", f"{again.url}/subjects") == (200, ["s1", "s2"])
        assert rest("POST", f"{again.url}/subjects/s4/versions", enum("e4")) == (200, {"id": 4})
