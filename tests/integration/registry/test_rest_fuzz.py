"""Undocumented requests: none of them causes a server error."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry
from support.registry.rest import rest


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with (
        EmbeddedBroker(settings=quick) as broker,
        EmbeddedRegistry(broker.bootstrap) as registry,
    ):
        yield registry.url


PARTS = ["subjects", "s", "versions", "1", "latest", "-1", "schemas", "ids", "config", "mode"]
PARTS += ["compatibility", "referencedby", "schema", "%00", "%ff", "99999999999999999999", ":.c:s"]
SCHEMAS = ['"int"', "{", '{"type":"object"}', 'syntax = "proto3"; message M {}', "AAAA", "", "[]"]
BODIES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "schema": st.sampled_from(SCHEMAS) | st.text(max_size=20),
        "schemaType": st.sampled_from(["AVRO", "JSON", "PROTOBUF", "x", None]),
        "references": st.sampled_from(
            [[], None, [{}], [{"name": "a", "subject": "s", "version": 1}]]
        ),
        "id": st.integers(-(1 << 70), 1 << 70),
        "compatibility": st.sampled_from(["FULL", "", None]),
        "mode": st.sampled_from(["READWRITE", "IMPORT", "x"]),
    },
)
QUERIES = ["", "?permanent=true", "?deleted=true&normalize=true", "?format=serialized", "?limit=x"]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    st.lists(st.sampled_from(PARTS), max_size=5),
    st.sampled_from(QUERIES),
    BODIES | st.text(max_size=5),
)
def test_every_request_is_answered(
    url: str, method: str, parts: list[str], query: str, body: object
) -> None:
    target = f"{url}/{'/'.join(parts)}{query}"
    status, found = rest(method, target, None if method == "GET" else body)
    assert status < 500, found
    if status >= 400:
        assert set(found) == {"error_code", "message"}
