"""Batches requests to other brokers: all waiting items for a broker go in one request."""

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId
from penstock.wire.schema import Message

logger = logging.getLogger(__name__)


R = TypeVar("R", bound=Message)


class Item(Protocol):
    """One item of a request."""

    def failed(self, code: ErrorCode) -> object:
        """Called if the broker was not reached, or its response was lost."""


class Link(Protocol):
    """A connection to a broker, such as `PeerConnection`."""

    async def call(self, request: Message, response: type[R], *, timeout_ms: int) -> R: ...

    def drop(self) -> None: ...


ItemT = TypeVar("ItemT", bound=Item)


class Outbox(Generic[ItemT, R]):
    """Has one connection to each broker, with one request at a time. Belongs to the event loop.

    `request` makes one request of several items; `answered` gives each item its result.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], Link],
        request: Callable[[list[ItemT]], Message],
        response: type[R],
        answered: Callable[[list[ItemT], R], object],
        timeout_ms: int,
    ) -> None:
        self._tasks, self._connection_to, self._timeout_ms = tasks, connection_to, timeout_ms
        self._request, self._response, self._answered = request, response, answered
        self._waiting: dict[BrokerId, list[ItemT]] = {}
        self._delivering: dict[BrokerId, asyncio.Task[None]] = {}
        self._connections: dict[BrokerId, Link] = {}
        self._is_open = True

    def post(self, broker: BrokerId, item: ItemT) -> None:
        """Send the item in the loop's next turn, or after the broker's response to the current
        request.
        """
        if not self._is_open:
            return  # this broker stops; the next process asks again
        self._waiting.setdefault(broker, []).append(item)
        if broker not in self._delivering:
            self._delivering[broker] = self._tasks.create_task(self._deliver(broker))

    def keep_only(self, alive: Collection[BrokerId]) -> None:
        """Drop the connections to all other brokers: they are gone."""
        for gone in self._connections.keys() - set(alive):
            self._connections.pop(gone).drop()

    def close(self) -> None:
        self._is_open = False
        for task in self._delivering.values():
            task.cancel()

    async def _deliver(self, broker: BrokerId) -> None:
        try:
            while items := self._waiting.pop(broker, None):
                await self._send(broker, items)
        finally:
            del self._delivering[broker]

    async def _send(self, broker: BrokerId, items: list[ItemT]) -> None:
        if broker not in self._connections:
            self._connections[broker] = self._connection_to(broker)
        try:
            response = await self._connections[broker].call(
                self._request(items), self._response, timeout_ms=self._timeout_ms
            )
        except KafkaError as error:
            logger.debug("cannot reach broker %d: %s", broker, error)
            for item in items:
                item.failed(error.code)
            return
        try:
            self._answered(items, response)
        except Exception:  # the boundary around a background loop
            logger.exception("cannot use the response of broker %d", broker)
            for item in items:
                item.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
