"""The HTTP service: authorisation, parsing, and responses.

    POST /topics/{name}   records; 200 with partition and offset of each
    POST /log             one record for `penstock.rest.log.topic`: `curl host/log -d "…"`

400 for an invalid body, 401 without the token, 404 for an unknown topic, 413 for a record or body
that is too large, 429 if too many records wait or too many bytes arrive, 503 if no broker answers.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, unquote

import msgspec

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.client.produce import Acks
from penstock.client.record_sender import ProducedRecord, ProducerRecord
from penstock.errors import ErrorCode, KafkaError
from penstock.http.access import Denied, check_local
from penstock.http.health import healthz
from penstock.http.message import HttpRequest, HttpResponse
from penstock.http.server import BoundAddress, HttpLimits, serving
from penstock.rest.body import BadBody, records_of
from penstock.rest.sender import RestSender, Result, TooMuchWaits

LIMITS: Final = HttpLimits(
    body_bytes=16 * 1024 * 1024, all_bodies_bytes=256 * 1024 * 1024, connections=1_000
)
ACKS: Final = {"all": Acks.ALL, "-1": Acks.ALL, "1": Acks.LEADER, "0": Acks.NONE}
TOPICS: Final = "/topics/"

STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    ErrorCode.INVALID_TOPIC_EXCEPTION: HTTPStatus.BAD_REQUEST,
    ErrorCode.MESSAGE_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.INVALID_RECORD: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_TIMESTAMP: HTTPStatus.BAD_REQUEST,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: HTTPStatus.FORBIDDEN,
}
"""The HTTP status of a broker error; any other error is a problem of the cluster: 503."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSettings:
    """The address to listen on, and the token that writers must send; None: no token needed."""

    host: str
    port: int
    token: str | None
    log_topic: str = "log"


@asynccontextmanager
async def running_rest(client: Client, settings: RestSettings) -> AsyncIterator[BoundAddress]:
    """Serve until the end of the block."""
    service = RestService(RestSender(client), settings)
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(service.sender.run())
        async with serving(
            tasks,
            service.answer,
            settings.host,
            settings.port,
            limits=LIMITS,
            setting="--listen",
            admit=service.refusal,
        ) as address:
            yield address
        sending.cancel()


class RestService:
    """Handles the requests."""

    def __init__(self, sender: RestSender, settings: RestSettings) -> None:
        self.sender, self._settings = sender, settings
        token = settings.token
        self._authorization = None if token is None else f"Bearer {token}".encode()

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path in {"/healthz", "/readyz"} and request.method in {"GET", "HEAD"}:
            return healthz(request)
        is_log = request.path == "/log"
        topic = unquote(request.path.removeprefix(TOPICS))
        if not is_log and (not request.path.startswith(TOPICS) or not topic or "/" in topic):
            return failed(HTTPStatus.NOT_FOUND, "there are /topics/{name} and /log")
        if request.method != "POST":
            refused = failed(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{request.method}: POST writes records"
            )
            return replace(refused, headers={"Allow": "POST"})
        denied = await self.refusal(request)
        if denied is not None:
            return denied
        acks = ACKS.get(parse_qs(request.query).get("acks", ["all"])[-1])
        if acks is None:
            return failed(HTTPStatus.BAD_REQUEST, "acks must be all, 1 or 0")
        try:
            if is_log:
                records = [ProducerRecord(self._settings.log_topic, request.body)]
            else:
                records = records_of(request, topic)
            return written(await self.sender.send(records, acks, create=is_log))
        except BadBody as error:
            return failed(HTTPStatus.BAD_REQUEST, str(error))
        except TooMuchWaits:
            refused = failed(HTTPStatus.TOO_MANY_REQUESTS, "too many records wait for the brokers")
            return replace(refused, headers={"Retry-After": "1"})
        except KafkaError as error:
            return failed(status_of(error), str(error))

    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """The refusal of a client that may not write, sent without reading its body."""
        if self._authorization is None:
            try:
                check_local(request)  # pages in the user's browser can reach loopback, too
            except Denied as denied:
                return failed(denied.status, str(denied))
            return None
        given = request.headers.get("authorization", "").encode("latin-1")
        if hmac.compare_digest(given, self._authorization):
            return None
        refused = failed(HTTPStatus.UNAUTHORIZED, "send the header Authorization: Bearer TOKEN")
        return replace(refused, headers={"WWW-Authenticate": "Bearer"})


def status_of(error: KafkaError) -> HTTPStatus:
    return STATUS.get(error.code, HTTPStatus.SERVICE_UNAVAILABLE)


def written(results: list[Result]) -> HttpResponse:
    """200 if any record was written, with an error for each other one; else the status of
    the first error.
    """
    refusals = [each for each in results if isinstance(each, BrokerRefused)]
    status = HTTPStatus.OK
    if refusals and len(refusals) == len(results):
        status = status_of(refusals[0])
    return _json(status, {"offsets": [_told(each) for each in results]})


def _told(result: Result) -> dict[str, object]:
    if isinstance(result, ProducedRecord):
        known = result.offset >= 0  # with acks=0 there is no offset
        return {
            "partition": result.partition.partition,
            "offset": result.offset if known else None,
            "error_code": None,
            "error": None,
        }
    return {
        "partition": None,
        "offset": None,
        "error_code": int(result.code),
        "error": str(result),
    }


def failed(status: HTTPStatus, text: str) -> HttpResponse:
    return _json(status, {"error_code": status.value, "message": text})


def _json(status: HTTPStatus, body: object) -> HttpResponse:
    return HttpResponse(status, "application/json", msgspec.json.encode(body) + b"\n")
