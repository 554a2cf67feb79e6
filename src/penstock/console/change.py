"""Changes: one table serves scripts (JSON) and pages (forms). Each attempt is one audit line."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from jinja2 import Environment
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.console.audit import Audit
from penstock.console.body import read_body
from penstock.console.guard import Asker
from penstock.console.jobs import Job, Jobs
from penstock.console.watch import ClusterWatch
from penstock.errors import ConfigError, KafkaError
from penstock.record_view.registry import SchemaRegistry

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
Int16: TypeAlias = Annotated[int, Meta(ge=-(1 << 15), le=(1 << 15) - 1)]
Int32: TypeAlias = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Int64: TypeAlias = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""The ranges of Kafka's integer types; validation errors name the field that is out of range."""


class Done(Struct, frozen=True):
    """The result of a change, as a sentence; `page` is where the browser goes next, if anywhere."""

    message: str
    page: str | None = None


@dataclass(frozen=True, slots=True)
class Doing:
    """The services that a change uses, and the user who requested it."""

    client: Client
    jobs: Jobs
    user: str
    registry: SchemaRegistry | None = None
    projects: tuple[Path, ...] = ()

    def start(self, what: str, work: Callable[[Job], Awaitable[str]]) -> Job:
        """Start a background job, which continues after the response."""
        return self.jobs.start(what, self.user, work)


@dataclass(frozen=True, slots=True)
class Change:
    """A route that changes the cluster. `rights` has the role that it needs."""

    name: str
    """The name in the audit log and of the MCP tool, such as `topic.create`."""
    method: str
    path: str
    summary: str
    request: type[Struct]
    """The request body. Fields that are also in the path are taken from the path."""
    do: Callable[["Doing", Any], Awaitable[Struct]]
    response: type[Struct] = Done
    template: str = "done.html"
    """The template that renders the response to a form."""


class Changes:
    """Serves the routes of a table of changes."""

    def __init__(
        self,
        watch: ClusterWatch,
        audit: Audit,
        jobs: Jobs,
        templates: Environment,
        table: tuple[Change, ...],
    ) -> None:
        self._watch, self._audit, self._jobs = watch, audit, jobs
        self._templates, self._table = templates, table

    def routes(self) -> list[Route]:
        return [
            Route(each.path, self._endpoint(each), methods=[each.method]) for each in self._table
        ]

    def _endpoint(self, change: Change) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            is_form = "hx-request" in request.headers
            given: Mapping[str, Any] = {}
            asker: Asker = request.state.asker
            try:
                given = await self._given(request, change)
                found = await self._done(asker, change, given)
            except (msgspec.ValidationError, ConfigError) as error:
                return self._refused(HTTPStatus.BAD_REQUEST, str(error), is_form=is_form)
            except BrokerRefused as error:
                return self._refused(HTTPStatus.CONFLICT, str(error), is_form=is_form)
            except KafkaError as error:
                return self._refused(HTTPStatus.SERVICE_UNAVAILABLE, str(error), is_form=is_form)
            await self._look_again()
            if not is_form:
                return Response(msgspec.json.encode(found), media_type=JSON)
            page = found.page if isinstance(found, Done) else None
            if page is not None:
                return Response(headers={"HX-Redirect": page})
            html = self._templates.get_template(change.template).render(found=found, given=given)
            return HTMLResponse(html)

        return handle

    async def _done(self, asker: Asker, change: Change, given: Mapping[str, Any]) -> Struct:
        """Perform the change and write an audit line, whether it succeeds or fails."""
        self._audit.check()
        result = "failed"
        try:
            watch = self._watch
            doing = Doing(watch.client, self._jobs, asker.name, watch.registry, watch.projects)
            found = await performed(change, given, doing)
            result = "ok"
        except (msgspec.ValidationError, ConfigError, KafkaError) as error:
            result = str(error)
            raise
        finally:
            self._audit.add(asker.name, asker.address, change.name, given, result)
        return found

    async def _given(self, request: Request, change: Change) -> dict[str, Any]:
        body = await read_body(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == FORM and "hx-request" in request.headers:
            given = nested(parse_qsl(body.decode("utf-8", "replace")), change.request)
        elif kind == JSON or not body:
            try:
                given = msgspec.json.decode(body or b"{}", type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ConfigError(f"the body is not a JSON object: {error}") from None
        else:
            raise ConfigError(f"the body must be {JSON}, not {kind or 'of no type'}")
        return {**given, **request.path_params}

    async def _look_again(self) -> None:
        """Refresh the watch, so that the next page shows the change."""
        try:
            await self._watch.look_anew()
        except KafkaError as error:
            self._watch.failed(error)

    def _refused(self, status: HTTPStatus, text: str, *, is_form: bool) -> Response:
        if is_form:
            html = self._templates.get_template("refused.html").render(text=text)
            return HTMLResponse(html, status)
        return Response(msgspec.json.encode({"error": text}), status, media_type=JSON)


async def performed(change: Change, given: Mapping[str, Any], doing: Doing) -> Struct:
    """Validate the fields and perform the change."""
    known = {each.encode_name for each in msgspec.structs.fields(change.request)}
    if unknown := sorted(set(given) - known):
        raise ConfigError(f"{unknown[0]} is not one of {', '.join(sorted(known))}")
    return await change.do(doing, msgspec.convert(given, change.request, strict=False))


def nested(pairs: list[tuple[str, str]], kind: type[Struct]) -> dict[str, Any]:
    """The JSON that a form stands for: `configs.x=1` is {"configs": {"x": "1"}}. Empty fields are
    left out; a field with a list type gets a list.
    """
    lists = {
        each.encode_name
        for each in msgspec.structs.fields(kind)
        if "list" in str(each.type) or "tuple" in str(each.type)
    }
    found: dict[str, Any] = {}
    for name, value in pairs:
        outer, dot, inner = name.partition(".")
        if not value:
            continue
        if dot:
            fields = found.setdefault(outer, {})
            if not isinstance(fields, dict):
                raise ConfigError(f"{outer} has a value, so {name} cannot have one")
            fields[inner] = value
        elif name in lists:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found
