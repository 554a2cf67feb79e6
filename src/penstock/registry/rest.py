"""The API over HTTP: authorisation, responses, and forwarding to the leader."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from penstock.client.admin import describe_cluster
from penstock.client.cluster import Client
from penstock.errors import KafkaError
from penstock.http.access import Denied, HttpAccess
from penstock.http.client import HttpServerAddress, RequestFailed, ask
from penstock.http.health import healthz
from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.router import HttpRoute, Router
from penstock.http.server import BoundAddress, HttpLimits, serving
from penstock.http.users import Role
from penstock.registry.api import OPERATIONS, Asked, Operation, RawText, RegistryAnswer, query_of
from penstock.registry.election import Identity
from penstock.registry.errors import RegistryError, store_failed
from penstock.registry.records import TOPIC
from penstock.registry.service import GROUP, Elsewhere, RegistryService
from penstock.types import Offset

CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
FORWARDED: Final = "x-forward"
"""Confluent's header: a request that another instance forwarded is not forwarded again."""
END: Final = "x-penstock-offset"
FORWARD_S: Final = 60.0
LIMITS: Final = HttpLimits(
    body_bytes=4 * 1024 * 1024, all_bodies_bytes=64 * 1024 * 1024, connections=1_000
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrySettings:
    """Address, access rules and TLS of an instance."""

    host: str
    port: int
    access: HttpAccess
    advertised: str | None = None
    tls: ssl.SSLContext | None = None
    to_leader: ssl.SSLContext | None = None
    """Trusts the certificates of the other instances, if they serve TLS."""


class RestApi:
    """Serves HTTP requests for a service."""

    def __init__(
        self, service: RegistryService, settings: RegistrySettings, client: Client
    ) -> None:
        self._service, self._settings, self._client = service, settings, client
        routes = [
            HttpRoute(each.method, each.path, partial(self._operate, each)) for each in OPERATIONS
        ]
        self._router = Router(
            [*routes, HttpRoute("GET", "/v1/metadata/id", self._cluster), *self._pages()]
        )

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        found = self._router.match(request)
        if isinstance(found, HttpResponse):
            text = f"HTTP {found.status.value} {found.status.phrase}"
            return _failed(RegistryError(found.status.value, text), found.headers)
        route, variables = found
        answer = route.handler(request, variables)
        return answer if isinstance(answer, HttpResponse) else await answer

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a client without any role, sent without reading its body."""
        try:
            await self._settings.access.check(request, Role.VIEWER)
        except Denied as denied:
            return _denied(denied)
        return None

    def _pages(self) -> list[HttpRoute]:
        """Health pages for monitoring. They reveal nothing, so they need no login."""

        def readyz(_: HttpRequest, __: Mapping[str, str]) -> HttpResponse:
            ready = self._service.is_ready
            status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
            return plain(status, "" if ready else "not ready: schemas are being read")

        return [
            HttpRoute("GET", "/healthz", lambda request, _: healthz(request)),
            HttpRoute("GET", "/readyz", readyz),
        ]

    async def _operate(
        self, operation: Operation, request: HttpRequest, variables: Mapping[str, str]
    ) -> HttpResponse:
        asked = Asked(variables, query_of(request.query), request.body)
        try:
            await self._settings.access.check(request, _role(operation, asked))
            if not self._service.log.is_loaded:
                raise RegistryError(50301, "The schemas are being read; try again soon")
            return _answered(await operation.do(self._service, asked))
        except Denied as denied:
            return _denied(denied)
        except Elsewhere as elsewhere:
            return await self._forwarded(request, elsewhere.leader)
        except RegistryError as error:
            return _failed(error)

    async def _forwarded(self, request: HttpRequest, leader: Identity) -> HttpResponse:
        if FORWARDED in request.headers:
            return _failed(RegistryError(50003, "This instance does not lead any more; try again"))
        tls = self._settings.to_leader
        if (leader.scheme == "https") is not (tls is not None):
            # Whoever may join the group says where the leader is: a password that came by TLS
            # must not go there in the clear.
            text = f"The leader is {leader.url}: all instances must serve TLS, or none"
            return _failed(RegistryError(50003, text))
        headers = {"X-Forward": "true", "Content-Type": CONTENT_TYPE}
        if "authorization" in request.headers:
            headers["Authorization"] = request.headers["authorization"]
        try:
            answer = await ask(
                HttpServerAddress(leader.host, leader.port, tls), request, headers, FORWARD_S
            )
        except RequestFailed as error:
            return _failed(RegistryError(50003, f"Forwarding to the leader failed: {error}"))
        await self._wait_for(answer.headers.get(END, ""))
        return replace(answer, headers={})

    async def _wait_for(self, end: str) -> None:
        """Wait until this instance has replayed what the client wrote through it, so that it can
        read its own write.
        """
        if end.isdigit():
            try:
                await self._service.log.caught_up(Offset(int(end)))
            except TimeoutError:
                logger.warning("this instance lags behind the leader")

    async def _cluster(self, request: HttpRequest, _: Mapping[str, str]) -> HttpResponse:
        denied = await self.refusal(request)
        if denied is not None:
            return denied
        try:
            cluster = await describe_cluster(self._client)
        except KafkaError as error:
            return _failed(store_failed(error))
        clusters = {
            "kafka-cluster": cluster.id,
            "schema-registry-cluster": self._service.group,
        }
        return _json({"scope": {"path": [], "clusters": clusters}, "id": ""})


@dataclass(frozen=True, slots=True)
class RunningRegistry:
    """An instance that answers at its address."""

    address: BoundAddress
    service: RegistryService


@asynccontextmanager
async def running_registry(
    client: Client, settings: RegistrySettings, *, topic: str = TOPIC, group: str = GROUP
) -> AsyncIterator[RunningRegistry]:
    """Run an instance. On exit it leaves the group and closes its connections."""
    api: list[RestApi] = []

    async def answer(request: HttpRequest) -> HttpResponse:
        # The service needs the bound port, so the server starts before it.
        return await api[0](request) if api else plain(HTTPStatus.SERVICE_UNAVAILABLE)

    async def admit(request: HttpRequest) -> HttpResponse | None:
        return await api[0].refusal(request) if api else await answer(request)

    async with (
        asyncio.TaskGroup() as tasks,
        serving(
            tasks,
            answer,
            settings.host,
            settings.port,
            limits=LIMITS,
            tls=settings.tls,
            setting="--listen",
            admit=admit,
        ) as bound,
    ):
        scheme = "http" if settings.tls is None else "https"
        own = Identity(settings.advertised or bound.host, bound.port, scheme=scheme)
        service = RegistryService(client, own, topic=topic, group=group)
        api.append(RestApi(service, settings, client))
        task = tasks.create_task(service.run())
        try:
            yield RunningRegistry(bound, service)
        finally:
            task.cancel()


def _role(operation: Operation, asked: Asked) -> Role:
    for_good = operation.method == "DELETE" and asked.flag("permanent")
    return Role.ADMIN if for_good else operation.role


def _answered(answer: RegistryAnswer) -> HttpResponse:
    headers = {} if answer.end is None else {END: str(answer.end)}
    if isinstance(answer.json, RawText):
        return HttpResponse(HTTPStatus.OK, CONTENT_TYPE, answer.json.encode(), headers)
    return _json(answer.json, headers=headers)


def _json(
    body: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    return HttpResponse(status, CONTENT_TYPE, msgspec.json.encode(body), headers or {})


def _failed(error: RegistryError, headers: Mapping[str, str] | None = None) -> HttpResponse:
    body = {"error_code": error.code, "message": error.message}
    return _json(body, error.status, headers)


def _denied(denied: Denied) -> HttpResponse:
    needs_login = denied.status is HTTPStatus.UNAUTHORIZED
    headers = {"WWW-Authenticate": 'Basic realm="penstock"'} if needs_login else {}
    return _failed(RegistryError(denied.status.value * 100 + 1, str(denied)), headers)
