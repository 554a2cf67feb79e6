"""The console's reads and changes as tools of an AI assistant: the Model Context Protocol.

Messages are lines of JSON-RPC 2.0. `Tools.answer` maps a message to its response and does no I/O on
streams.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

import penstock
from penstock.console.api import API
from penstock.console.audit import Audit
from penstock.console.change import Change, Doing, performed
from penstock.console.changes.table import CHANGES
from penstock.console.jobs import Jobs
from penstock.console.messages.parameters import QUERY, number, paging_of, query_of
from penstock.console.messages.query import cursor_of, token
from penstock.console.messages.service import Messages
from penstock.console.messages.view import MessagePage, messages_of
from penstock.console.route import ApiRoute
from penstock.console.watch import ClusterWatch
from penstock.errors import ConfigError, KafkaError

VERSION: Final = "2025-06-18"
FRESH_MS: Final = 2_000
"""A younger look is used again."""
WITHIN_MS: Final = 5_000
MOST_MESSAGES: Final = 100
CURSOR: Final = "cursor"
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
TEXT: Final = {"type": "string"}

Arguments = Mapping[str, Any]

logger = logging.getLogger(__name__)


class _Refused(Exception):
    """Becomes a JSON-RPC error response."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool that the assistant may call."""

    name: str
    text: str
    schema: Mapping[str, Any]
    call: Callable[[Arguments], Awaitable[object]]
    changes: bool = False

    def described(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "description": self.text,
            "inputSchema": self.schema,
            "annotations": {"readOnlyHint": not self.changes, "destructiveHint": self.changes},
        }


class Tools:
    """All tools: reads always, changes only with `allow_changes`. Each call is audited."""

    def __init__(
        self,
        watch: ClusterWatch,
        messages: Messages,
        jobs: Jobs,
        audit: Audit,
        *,
        user: str,
        allow_changes: bool,
    ) -> None:
        self._watch, self._messages, self._jobs = watch, messages, jobs
        self._audit, self._user = audit, user
        found = [self._reading(each) for each in API]
        found += [self._searching(), self._listing_jobs()]
        found += [self._changing(each) for each in CHANGES if allow_changes]
        self._tools = {each.name: each for each in found}

    async def answer(self, line: bytes) -> bytes | None:
        """The response to a message; None for a notification."""
        ident: object = None
        try:
            try:
                asked = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise _Refused(PARSE_ERROR, str(error)) from None
            if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
                raise _Refused(INVALID_REQUEST, "not a request of JSON-RPC 2.0")
            ident = asked.get("id")
            if "id" not in asked:
                return None
            params = asked.get("params") or {}
            if not isinstance(params, dict):
                raise _Refused(INVALID_PARAMS, "params must be an object")
            result = await self._result(asked["method"], params)
        except _Refused as refused:
            reason = {"code": refused.code, "message": str(refused)}
            return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "error": reason})
        return msgspec.json.encode({"jsonrpc": "2.0", "id": ident, "result": result})

    async def _result(self, method: str, params: Arguments) -> object:
        match method:
            case "initialize":
                return {
                    "protocolVersion": VERSION,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "penstock", "version": penstock.__version__},
                }
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [each.described() for each in self._tools.values()]}
            case "tools/call":
                return await self._called(params)
            case _:
                raise _Refused(NO_METHOD, f"there is no method {method}")

    async def _called(self, params: Arguments) -> object:
        name, given = params.get("name"), params.get("arguments") or {}
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(given, dict):
            tried = given if isinstance(given, dict) else {}
            self._audit.add(self._user, "mcp", str(name)[:64], tried, "there is no such tool")
            raise _Refused(INVALID_PARAMS, f"there is no tool {name}")
        result, failed = "ok", False
        try:
            self._audit.check()
            text = msgspec.json.encode(await tool.call(given)).decode()
        except (ConfigError, KafkaError, msgspec.ValidationError) as error:
            text = result = str(error)
            failed = True
        except Exception:
            logger.exception("the tool %s failed", tool.name)
            text, result, failed = "an error of penstock: see its log", "failed", True
        self._audit.add(self._user, "mcp", tool.name, given, result)
        return {"content": [{"type": "text", "text": text}], "isError": failed}

    def _reading(self, route: ApiRoute) -> McpTool:
        async def call(given: Arguments) -> object:
            texts = {name: str(each) for name, each in given.items()}
            route.check(texts)
            found = await route.answer(self._watch, await self._look(), texts)
            if found is None:
                raise ConfigError(f"there is no {' '.join(map(str, given.values()))}")
            return found

        words = route.path.removeprefix("/api/v1/").replace("{", "").replace("}", "")
        schema = strings(route.parameters, route.optional)
        return McpTool(words.replace("/", "_"), route.summary, schema, call)

    async def _look(self) -> Any:
        last = self._watch.last
        if last is None or self._watch.now_ms() - last.at_ms > FRESH_MS:
            await self._watch.look()
        return self._watch.last

    def _searching(self) -> McpTool:
        async def call(given: Arguments) -> object:
            values = {name: str(each) for name, each in given.items()}
            limit = number(values, "limit", 20, MOST_MESSAGES)
            values.pop("limit", None)
            topic = values.pop("topic", "")
            known = {CURSOR, *(each.name for each in QUERY)}
            if unknown := sorted(set(values) - known):
                raise ConfigError(f"{unknown[0]} is not one of {', '.join(sorted(known))}")
            if paging_of(values).cursor:
                cursor = cursor_of(values[CURSOR], topic)
                partitions = tuple(each.partition for each in cursor.spans)
                await self._messages.partitions(topic, partitions)
            else:
                cursor = await self._messages.begin(query_of(topic, values))
            found = await self._messages.search(cursor, limit, WITHIN_MS, sees_all=False)
            reached = found.cursor
            decode = self._messages.decode
            return MessagePage(
                await asyncio.to_thread(messages_of, topic, found.hits, decode),
                None if reached.is_done else token(reached),
                reached.scanned,
                reached.total,
                reached.matches,
                found.left_ms,
                found.warning,
            )

        properties = {each.name: {**each.schema, "description": each.text} for each in QUERY}
        properties[CURSOR] = {
            **TEXT,
            "description": "The cursor of an answer, to go on where it ended; with the topic, and "
            "instead of all other parameters of the search.",
        }
        properties["limit"] = {"type": "integer", "minimum": 0, "maximum": MOST_MESSAGES}
        schema = {
            "type": "object",
            "properties": {"topic": TEXT, **properties},
            "required": ["topic"],
        }
        text = (
            "Search the records of a topic, newest first. An answer comes after some seconds; if "
            "it has a cursor, there is more to search."
        )
        return McpTool("messages", text, schema, call)

    def _listing_jobs(self) -> McpTool:
        async def call(_: Arguments) -> object:
            return list(self._jobs.all)

        return McpTool("jobs", "Work that goes on, and how far it is.", strings(()), call)

    def _changing(self, change: Change) -> McpTool:
        async def call(given: Arguments) -> object:
            watch = self._watch
            doing = Doing(watch.client, self._jobs, self._user, watch.registry, watch.projects)
            return await performed(change, given, doing)

        name = change.name.replace(".", "_").replace("-", "_")
        return McpTool(name, change.summary, inlined(change), call, changes=True)


def strings(names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict.fromkeys((*names, *optional), TEXT),
        "required": list(names),
    }


def inlined(change: Change) -> dict[str, Any]:
    """The JSON schema of a change's request, with the schemas that it refers to under `$defs`."""
    (_,), components = msgspec.json.schema_components(
        [change.request], ref_template="#/$defs/{name}"
    )
    own = components.pop(change.request.__name__)
    return {**own, "$defs": components} if components else own
