"""Changes that another instance carries out."""

import asyncio
import ssl
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.client.cluster import Client
from penstock.http.access import HttpAccess
from penstock.http.client import HttpServerAddress, RequestFailed
from penstock.http.message import HttpRequest, HttpResponse
from penstock.registry import rest
from penstock.registry.election import Identity
from penstock.registry.rest import RegistrySettings, RestApi
from penstock.registry.service import Elsewhere, RegistryService


@pytest.mark.parametrize("serves_tls", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_login_goes_to_the_leader_as_it_came(
    scheme: str, *, serves_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By TLS, if this instance serves TLS, whatever the leader says of itself."""
    tls = ssl.create_default_context() if serves_tls else None
    asked: list[HttpServerAddress] = []

    async def ask(server: HttpServerAddress, *_: object) -> HttpResponse:
        asked.append(server)
        raise RequestFailed("on purpose")

    async def change(_: object) -> Any:
        raise Elsewhere(Identity("elsewhere", 1, scheme=scheme))

    monkeypatch.setattr(rest, "ask", ask)
    service = SimpleNamespace(log=SimpleNamespace(is_loaded=True), change=change)
    settings = RegistrySettings(host="127.0.0.1", port=0, access=HttpAccess(None), to_leader=tls)
    api = RestApi(cast("RegistryService", service), settings, cast("Client", None))
    headers = {"host": "127.0.0.1", "authorization": "Basic YTpi"}
    body = b'{"compatibility": "FULL"}'
    answer = asyncio.run(api(HttpRequest("PUT", "/config", "", headers, body=body)))
    assert b'"error_code":50003' in cast("bytes", answer.body)
    fits = (scheme == "https") is serves_tls
    assert asked == ([HttpServerAddress("elsewhere", 1, tls)] if fits else [])
