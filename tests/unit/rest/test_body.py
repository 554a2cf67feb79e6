"""Request bodies, and the access token."""

import pytest

from penstock.client.record_sender import ProducerRecord
from penstock.errors import ConfigError
from penstock.http.message import HttpRequest
from penstock.rest import body as body_module
from penstock.rest.body import BINARY_BATCH, JSON_BATCH, NDJSON, BadBody, records_of
from penstock.rest.token import checked_token


def request(body: bytes, kind: str = "", query: str = "", **headers: str) -> HttpRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpRequest("POST", "/topics/t", query, {"content-type": kind, **named}, body=body)


def test_any_body_is_one_record_with_key_partition_and_headers() -> None:
    asked = request(b"\x00raw", query="key=a%20b&partition=2", penstock_header_trace="7")
    assert records_of(asked, "t") == [
        ProducerRecord("t", b"\x00raw", b"a b", [("trace", b"7")], 2),
    ]


def test_each_line_is_a_record() -> None:
    found = records_of(request(b'{"a":1}\r\n\n{"b":2}', NDJSON + "; charset=utf-8"), "t")
    assert [each.value for each in found] == [b'{"a":1}', b'{"b":2}']


def test_too_many_lines_are_refused_before_they_are_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight million records of 16 MiB would take half a minute and block all other requests."""
    monkeypatch.setattr(body_module, "MOST_RECORDS", 3)
    assert len(records_of(request(b"1\n2\n3\n", NDJSON), "t")) == 3
    monkeypatch.setattr(body_module, "ProducerRecord", None)  # no record is created
    with pytest.raises(BadBody, match="too many"):
        records_of(request(b"1\n" * 4, NDJSON), "t")


def test_batches_have_keys_headers_partitions_and_times() -> None:
    body = b"""{"records": [
      {"key": "k", "value": {"n": 1.10}, "headers": {"h": "x", "none": null}, "partition": 1},
      {"value": null, "timestamp": 5}]}"""
    assert records_of(request(body, JSON_BATCH), "t") == [
        ProducerRecord("t", b'{"n": 1.10}', b'"k"', [("h", b"x"), ("none", None)], 1),
        ProducerRecord("t", None, None, [], None, 5),
    ]
    body = b'{"records": [{"key": "aw==", "value": "AAE="}]}'
    assert records_of(request(body, BINARY_BATCH), "t") == [ProducerRecord("t", b"\0\1", b"k", [])]


@pytest.mark.parametrize(
    ("body", "kind", "reported"),
    [
        (b"", NDJSON, "no records"),
        (b"{", JSON_BATCH, "not a batch of records"),
        (b'{"records": [{"valu": 1}]}', JSON_BATCH, "valu"),
        (b'{"records": []}', JSON_BATCH, "no records"),
        (b'{"records": [{"headers": {"a": "\xff"}}]}', JSON_BATCH, "not a batch of records"),
        (b'{"records": [{"value": "\xff"}]}', JSON_BATCH, r"records\[0\]"),
        (b'{"records": [{"value": "AA=="}, {"value": "!"}]}', BINARY_BATCH, r"records\[1\]"),
        (b'{"records": [{"value": 1}]}', BINARY_BATCH, r"records\[0\]"),
        (b'{"records": [{"timestamp": 99999999999999999999}]}', JSON_BATCH, "timestamp"),
        (b'{"records": [{"timestamp": -1}]}', JSON_BATCH, "timestamp"),
        (b'{"records": [{"partition": 9999999999}]}', JSON_BATCH, "partition"),
    ],
)
def test_an_error_names_the_position_of_the_mistake(body: bytes, kind: str, reported: str) -> None:
    with pytest.raises(BadBody, match=reported):
        records_of(request(body, kind), "t")


@pytest.mark.parametrize(("query", "key"), [("key=%ff%00", b"\xff\x00"), ("key=", b""), ("", None)])
def test_a_key_may_be_any_bytes(query: str, key: bytes | None) -> None:
    assert records_of(request(b"v", query=query), "t")[0].key == key


def test_a_partition_must_be_a_number() -> None:
    with pytest.raises(BadBody, match="partition='x'"):
        records_of(request(b"v", query="partition=x"), "t")


def test_without_a_token_only_loopback_may_write() -> None:
    assert checked_token("none", "127.0.0.1", "penstock.rest.token") is None
    assert checked_token("secret", "", "penstock.rest.token") == "secret"
    for token, host, reported in (
        ("", "127.0.0.1", "penstock.rest.token is missing"),
        ("none", "0.0.0.0", "for loopback only"),
        ("none", "", "for loopback only"),
        ("a b", "127.0.0.1", "without spaces"),
    ):
        with pytest.raises(ConfigError, match=reported):
            checked_token(token, host, "penstock.rest.token")
