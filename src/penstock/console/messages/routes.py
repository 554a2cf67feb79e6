"""The REST API of records: search, one record, its bytes, export, and a tail of new records."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from penstock.client.errors import BrokerRefused
from penstock.console.guard import Asker
from penstock.console.messages.export import FORMATS
from penstock.console.messages.parameters import (
    EXPORT,
    MOST_LIMIT,
    OLDEST,
    PAGE,
    QUERY,
    TAIL,
    given,
    number,
    paging_of,
    query_of,
)
from penstock.console.messages.query import LARGEST, Cursor, cursor_of, token
from penstock.console.messages.search import Hit
from penstock.console.messages.service import Messages, NoSuchTopic, SearchPage
from penstock.console.messages.tail import TopicTail
from penstock.console.messages.view import MessagePage, detail, messages_of
from penstock.console.watch import ClusterWatch
from penstock.errors import ConfigError, KafkaError
from penstock.http.users import Role

JSON: Final = "application/json"
PARTS: Final = ("key", "value")


def sees_all(request: Request) -> bool:
    """Whether the user sees unmasked records; viewers do not, and a read-only console has only
    viewers.
    """
    asker: Asker = request.state.asker
    return asker.may(Role.OPERATOR.name)


def refused(status: HTTPStatus, text: str) -> Response:
    return Response(msgspec.json.encode({"error": text}), status, media_type=JSON)


Handle = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[HTTPStatus, str], Response]


class MessageApi:
    """The routes of records. They answer 503 until `watch` has reached the cluster."""

    def __init__(self, watch: ClusterWatch, messages: Messages) -> None:
        self._watch, self._messages = watch, messages

    def routes(self) -> list[Route]:
        base = "/api/v1/topics/{topic}"
        table = {
            f"{base}/messages": self.page,
            f"{base}/messages/{{partition}}/{{offset}}": self.one,
            f"{base}/messages/{{partition}}/{{offset}}/{{part}}": self.part,
            f"{base}/export": self.export,
            f"{base}/tail": self.tail,
        }
        return [
            Route(path, answering(self._watch, handle, refused), methods=["GET"])
            for path, handle in table.items()
        ]

    async def page(self, request: Request) -> Response:
        found = await searched(self._messages, request)
        topic, cursor, decode = request.path_params["topic"], found.cursor, self._messages.decode
        shown = MessagePage(
            await asyncio.to_thread(messages_of, topic, found.hits, decode),
            None if cursor.is_done else token(cursor),
            cursor.scanned,
            cursor.total,
            cursor.matches,
            found.left_ms,
            found.warning,
        )
        return Response(msgspec.json.encode(shown), media_type=JSON)

    async def one(self, request: Request) -> Response:
        given(request.query_params.multi_items(), ())
        hit = await found_hit(self._messages, request)
        topic, decode = request.path_params["topic"], self._messages.decode
        shown = await asyncio.to_thread(detail, topic, hit, decode, None)
        return Response(msgspec.json.encode(shown), media_type=JSON)

    async def part(self, request: Request) -> Response:
        """The raw bytes, as a download and never as a page: they may be HTML."""
        given(request.query_params.multi_items(), ())
        name = request.path_params["part"]
        if name not in PARTS:
            raise ConfigError(f"{name} is not one of {', '.join(PARTS)}")
        hit = await found_hit(self._messages, request)
        data = hit.record.key if name == "key" else hit.record.value
        if data is None:
            raise NoSuchTopic(f"the {name} is null")
        return Response(data, media_type="application/octet-stream", headers=saved_as(name))

    async def export(self, request: Request) -> Response:
        values = given(request.query_params.multi_items(), EXPORT)
        form = values.pop("format", "jsonl")
        if form not in FORMATS:
            raise ConfigError(f"format {form!r} is not one of {', '.join(FORMATS)}")
        limit = number(values, "limit", LARGEST, LARGEST)
        topic = request.path_params["topic"]
        query = query_of(topic, values, OLDEST)
        # report a wrong expression before streaming begins
        self._messages.criteria(query, sees_all=True)
        cursor = await self._messages.begin(query)
        kind, first, _ = FORMATS[form]
        body = self._lines(form, cursor, limit, sees_all=sees_all(request))
        return StreamingResponse(
            _after(first, body), media_type=kind, headers=saved_as(f"{topic}.{form}")
        )

    async def _lines(
        self, form: str, cursor: Cursor, left: int, *, sees_all: bool
    ) -> AsyncIterator[bytes]:
        write, topic = FORMATS[form][2], cursor.query.topic
        while left and not cursor.is_done:
            found = await self._messages.search(
                cursor, min(left, MOST_LIMIT), 1000, sees_all=sees_all
            )
            left -= len(found.hits)
            cursor = found.cursor
            yield write(topic, found.hits)

    async def tail(self, request: Request) -> Response:
        values = given(request.query_params.multi_items(), TAIL)
        after = values.pop("after", "") or request.headers.get("last-event-id", "")
        query = query_of(request.path_params["topic"], values)
        tail = TopicTail(self._messages, query, sees_all=sees_all(request))
        positions = await tail.positions(after)
        asker: Asker = request.state.asker
        events = tail.events(positions, asker.still)
        return StreamingResponse(events, media_type="text/event-stream")


async def searched(messages: Messages, request: Request) -> SearchPage:
    values = given(request.query_params.multi_items(), (*QUERY, *PAGE))
    paging, topic = paging_of(values), request.path_params["topic"]
    if paging.cursor:
        cursor = cursor_of(paging.cursor, topic)
        await messages.partitions(topic, tuple(each.partition for each in cursor.spans))
    else:
        cursor = await messages.begin(query_of(topic, values))
    return await messages.search(cursor, paging.limit, paging.within_ms, sees_all=sees_all(request))


async def found_hit(messages: Messages, request: Request) -> Hit:
    path = request.path_params
    partition = number(path, "partition", 0, (1 << 31) - 1)
    offset = number(path, "offset", 0, LARGEST - 1)
    hit = await messages.one(path["topic"], partition, offset, sees_all=sees_all(request))
    if hit is None:
        raise NoSuchTopic(f"there is no record {offset} in {path['topic']}-{partition}")
    return hit


def answering(watch: ClusterWatch, handle: Handle, refuse: Refuse) -> Handle:
    """Wraps a handler: errors of the request or the cluster become a response with a sentence."""

    async def safely(request: Request) -> Response:
        if watch.last is None:
            why_not = watch.failure or "it was not looked at yet"
            text = f"no answer from the cluster: {why_not}"
            return refuse(HTTPStatus.SERVICE_UNAVAILABLE, text)
        try:
            return await handle(request)
        except NoSuchTopic as error:
            return refuse(HTTPStatus.NOT_FOUND, str(error))
        except ConfigError as error:
            return refuse(HTTPStatus.BAD_REQUEST, str(error))
        except BrokerRefused as error:
            return refuse(HTTPStatus.CONFLICT, str(error))
        except KafkaError as error:
            return refuse(HTTPStatus.SERVICE_UNAVAILABLE, str(error))

    return safely


def saved_as(name: str) -> dict[str, str]:
    """A Content-Disposition header; characters that could break it become underscores."""
    safe = "".join(each if each.isalnum() or each in "._-" else "_" for each in name)
    return {"Content-Disposition": f'attachment; filename="{safe}"'}


async def _after(first: bytes, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for each in body:
        yield each
