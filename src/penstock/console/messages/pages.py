"""The record pages: the searchable list, and one record. Record text is untrusted, so
it is escaped.
"""

import asyncio
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from penstock.console.audit import Audit
from penstock.console.body import LARGEST as LARGEST_BODY
from penstock.console.body import read_body
from penstock.console.guard import Asker
from penstock.console.messages.parameters import PAGE, QUERY, given
from penstock.console.messages.produce import IMPORT_BYTES, header_line, import_lines
from penstock.console.messages.query import LARGEST, SEARCHED_PARTS, SearchQuery, token
from penstock.console.messages.routes import (
    JSON,
    answering,
    found_hit,
    refused,
    searched,
)
from penstock.console.messages.service import Messages
from penstock.console.messages.view import Part, detail, header_name, messages_of, shown
from penstock.console.watch import ClusterWatch
from penstock.counted import counted
from penstock.errors import ConfigError, KafkaError
from penstock.record.record import Record
from penstock.record_view.timestamp import iso_time

PAGE_CHARACTERS = 256 * 1024
"""The most characters of a value on the record's page; the download has the whole value."""
ROW_CHARACTERS = 300
RESENT_BYTES = LARGEST_BODY // 4
"""The largest record in the form that sends it again: encoded, each byte may take three, and
browsers hang for minutes on a text of many megabytes.
"""


class MessagePages:
    """Serves the record pages and the import, whose bodies are larger than others."""

    def __init__(
        self, watch: ClusterWatch, messages: Messages, templates: Environment, audit: Audit
    ) -> None:
        self._watch, self._messages, self._audit = watch, messages, audit
        self._templates = templates
        self._templates.filters |= {"shown": shown_part, "row": row_text}

    def routes(self) -> list[Route]:
        base = "/topics/{topic}/messages"
        return [
            Route(base, self._page(self.list)),
            Route(f"{base}/{{partition}}/{{offset}}", self._page(self.one)),
            Route(
                "/api/v1/topics/{topic}/import",
                answering(self._watch, self.take_file, refused),
                methods=["POST"],
            ),
        ]

    def _page(self, handle: Any) -> Any:
        async def safely(request: Request) -> Response:
            def refuse(status: HTTPStatus, text: str) -> Response:
                return self._html(request, "messages_refused.html", status, text=text)

            return await answering(self._watch, handle, refuse)(request)

        return safely

    def _html(
        self, request: Request, name: str, status: HTTPStatus = HTTPStatus.OK, **values: Any
    ) -> Response:
        html = self._templates.get_template(name).render(
            url=request.url.path,
            look=None,
            failure=None,
            polls=False,
            asker=request.state.asker,
            topic=request.path_params["topic"],
            **values,
        )
        return HTMLResponse(html, status)

    async def list(self, request: Request) -> Response:
        values = given(request.query_params.multi_items(), (*QUERY, *PAGE))
        found = await searched(self._messages, request)
        topic, cursor, decode = request.path_params["topic"], found.cursor, self._messages.decode
        rows = await asyncio.to_thread(messages_of, topic, found.hits, decode)
        values = form_values(cursor.query) if "cursor" in values else values
        limit = {"limit": values["limit"]} if "limit" in values else {}
        query = {each: text for each, text in values.items() if each in FORM}
        return self._html(
            request,
            "messages.html",
            rows=rows,
            values={**dict.fromkeys(FORM, ""), **values},
            search=urlencode(query),
            cursor=cursor,
            more=None if cursor.is_done else urlencode({"cursor": token(cursor), **limit}),
            left_ms=found.left_ms,
            warning=found.warning,
            places=SEARCHED_PARTS,
            resend=NEW,
        )

    async def one(self, request: Request) -> Response:
        given(request.query_params.multi_items(), ())
        hit = await found_hit(self._messages, request)
        topic, decode = request.path_params["topic"], self._messages.decode
        found = await asyncio.to_thread(detail, topic, hit, decode, PAGE_CHARACTERS)
        return self._html(
            request,
            "message.html",
            found=found,
            resend=resend_form(hit.record),
        )

    async def take_file(self, request: Request) -> Response:
        topic, asker = request.path_params["topic"], request.state.asker
        assert isinstance(asker, Asker)
        form = request.query_params.get("format", "jsonl")
        self._audit.check()
        result = "failed"
        try:
            body = await read_body(request, IMPORT_BYTES)
            found = await import_lines(self._messages.client, topic, form, body)
            result = counted(found.written, "record") + (f"; {found.error}" if found.error else "")
        except (ConfigError, KafkaError) as error:
            result = str(error)
            raise
        finally:
            where = {"topic": topic, "format": form}
            self._audit.add(asker.name, asker.address, "message.import", where, result)
        status = HTTPStatus.OK if found.error is None else HTTPStatus.CONFLICT
        return Response(msgspec.json.encode(found), status, media_type=JSON)


NEW = {"key_encoding": "null", "value_encoding": "text", "key": "", "value": "", "header_lines": ""}
FORM = tuple(each.name for each in QUERY)


def form_values(query: SearchQuery) -> dict[str, str]:
    """The parameters that a search began with, to fill its form."""
    found = {
        "partition": ",".join(map(str, query.partitions)),
        "start": str(query.start or ""),
        "end": "" if query.end == LARGEST else str(query.end),
        "since": iso_time(query.since_ms) if query.since_ms else "",
        "until": "" if query.until_ms == LARGEST else iso_time(query.until_ms),
        "text": query.text,
        "place": "" if query.place == "any" else query.place,
        "key": query.key,
        "expression": query.expression,
        "order": "" if query.newest_first else "oldest",
        "committed": "true" if query.committed else "",
    }
    return {name: text for name, text in found.items() if text}


def shown_part(part: Part) -> str:
    return "" if part.value is None else shown(part.value)


def row_text(part: Part) -> str:
    """The beginning of a key or value, on one line."""
    value = part.value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= ROW_CHARACTERS else text[:ROW_CHARACTERS] + "…"


def resend_form(record: Record) -> dict[str, str] | None:
    """The fields of the new-record form, filled with this record byte for byte. None: too large."""
    parts = (record.key, record.value, *(value for _, value in record.headers))
    if sum(len(each or b"") for each in parts) > RESENT_BYTES:
        return None
    fields: dict[str, str] = {}
    for name, data in (("key", record.key), ("value", record.value)):
        text, encoding = editable(data)
        fields |= {name: text, f"{name}_encoding": encoding}
    fields["header_lines"] = "\n".join(
        header_line(header_name(name), value) for name, value in record.headers
    )
    return fields


def editable(data: bytes | None) -> tuple[str, str]:
    """Text and encoding that a form preserves. Browsers change carriage returns, so such text is
    sent as hex.
    """
    if data is None:
        return "", "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex(), "hex"
    return (data.hex(), "hex") if "\r" in text or "\0" in text else (text, "text")
