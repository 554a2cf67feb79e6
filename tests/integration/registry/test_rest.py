"""The REST API compared with the responses that Confluent documents, in `answers.json`."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from penstock.testing.broker import EmbeddedBroker
from penstock.testing.registry import EmbeddedRegistry
from support.registry.rest import rest

ANSWERS = Path(__file__).with_name("answers.json")
QUICK = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with (
        EmbeddedBroker(settings=QUICK) as broker,
        EmbeddedRegistry(broker.bootstrap) as registry,
    ):
        yield registry.url


def stories() -> list[Any]:
    found: dict[str, Any] = json.loads(ANSWERS.read_text())
    return [pytest.param(steps, id=name) for name, steps in found.items()]


@pytest.mark.parametrize("steps", stories())
def test_responses_equal_the_documented_ones(steps: list[dict[str, Any]], url: str) -> None:
    """Ids depend on earlier tests, so the file has {first}, {first+1} and so on."""
    _, made = rest("POST", f"{url}/subjects/ids/versions", {"schema": '"null"'})
    rest("PUT", f"{url}/config/ids", {"compatibility": "NONE"})
    known = rest("GET", f"{url}/schemas/ids/{made['id']}?fetchMaxId=true")[1]["maxId"]
    for each in steps:
        method, path = numbered(each["request"], known).split(" ")
        body = each.get("body")
        answer = json.loads(numbered(json.dumps(each["answer"]), known))
        status, found = rest(method, url + path, body)
        message = answer.pop("message_begins", None) if isinstance(answer, dict) else None
        if message is not None:
            assert found.pop("message").startswith(message)
        assert (status, found) == (each.get("status", 200), answer), each["request"]


def numbered(text: str, known: int) -> str:
    for step in range(4):
        text = text.replace(f'"{{first+{step}}}"', str(known + 1 + step))
        text = text.replace(f"{{first+{step}}}", str(known + 1 + step))
    return text


def test_subjects_may_have_any_characters(url: str) -> None:
    rest("POST", f"{url}/subjects/a%2Fb%20c%3F/versions", {"schema": '"int"'})
    assert rest("GET", f"{url}/subjects/a%2Fb%20c%3F/versions") == (200, [1])
    assert "a/b c?" in rest("GET", f"{url}/subjects?subjectPrefix=a%2F")[1]


def test_a_broken_schemas_incompatibility_is_explained(url: str) -> None:
    path = f"{url}/compatibility/subjects/broken/versions/latest?verbose=true"
    status, found = rest("POST", path, {"schema": "{"})
    assert (status, found["is_compatible"]) == (200, False)
    assert [each.partition(":")[0] for each in found["messages"]] == ["Invalid schema"]


def test_a_version_with_very_many_digits_is_invalid(url: str) -> None:
    """Python does not parse such numbers."""
    for path in ("subjects/s/versions", "compatibility/subjects/s/versions"):
        for digits in ("9" * 5_000, "\u0661".encode("utf-8").hex()):
            method = "GET" if path.startswith("subjects") else "POST"
            status, found = rest(method, f"{url}/{path}/{digits}", {"schema": '"int"'})
            assert (status, found["error_code"]) == (422, 42202)
            assert len(found["message"]) < 1_000


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"schema":1}', b'{"schema":""}'])
def test_invalid_bodies_are_refused(body: bytes, url: str) -> None:
    for path in ("/subjects/s/versions", "/subjects/s", "/compatibility/subjects/s/versions"):
        status, found = rest("POST", url + path, body)
        assert (status, found["error_code"]) in {(400, 400), (422, 42201)}
    assert rest("GET", f"{url}/subjects/s/versions")[0] == 404


def test_a_browser_on_another_site_is_refused(url: str) -> None:
    for name, value in (("Origin", "http://evil.example"), ("Host", "evil.example")):
        status, found = rest("GET", f"{url}/subjects", headers={name: value})
        assert (status, found["error_code"]) == (403, 40301)


def test_a_large_body_of_a_refused_client_is_not_read(url: str) -> None:
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), timeout=10) as sock:
        head = "POST /subjects/s/versions HTTP/1.1", "Host: evil.example", "Content-Length: 4000000"
        sock.sendall("\r\n".join((*head, "", "")).encode())
        assert sock.recv(12) == b"HTTP/1.1 403"
