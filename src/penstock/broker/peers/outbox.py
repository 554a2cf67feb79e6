"""What goes to other brokers in batches: all that waits for one of them leaves together."""

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
    """Something that a broker is asked."""

    def failed(self, code: ErrorCode) -> object:
        """The broker was not reached, or nobody knows whether it was."""


class Link(Protocol):
    """A connection to a broker: `PeerConnection` is one."""

    async def call(self, request: Message, answer: type[R], *, timeout_ms: int) -> R: ...

    def drop(self) -> None: ...


Asked = TypeVar("Asked", bound=Item)


class Outbox(Generic[Asked, R]):
    """One connection to each broker, and one request at a time on it. Belongs to the event loop.

    `request` makes one of all that waits; `answered` hands the answer to the items it was made of.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        connection_to: Callable[[BrokerId], Link],
        request: Callable[[list[Asked]], Message],
        response: type[R],
        answered: Callable[[list[Asked], R], object],
        timeout_ms: int,
    ) -> None:
        self._tasks, self._connection_to, self._timeout_ms = tasks, connection_to, timeout_ms
        self._request, self._response, self._answered = request, response, answered
        self._waiting: dict[BrokerId, list[Asked]] = {}
        self._delivering: dict[BrokerId, asyncio.Task[None]] = {}
        self._connections: dict[BrokerId, Link] = {}
        self._is_open = True

    def post(self, broker: BrokerId, item: Asked) -> None:
        """Send it soon: in the loop's next turn, or when the broker has answered what it has."""
        if not self._is_open:
            return  # this broker stops: whoever comes after it asks anew
        self._waiting.setdefault(broker, []).append(item)
        if broker not in self._delivering:
            self._delivering[broker] = self._tasks.create_task(self._deliver(broker))

    def only(self, alive: Collection[BrokerId]) -> None:
        """Whoever else was asked answers no more: it is not waited for."""
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

    async def _send(self, broker: BrokerId, items: list[Asked]) -> None:
        if broker not in self._connections:
            self._connections[broker] = self._connection_to(broker)
        try:
            response = await self._connections[broker].call(
                self._request(items), self._response, timeout_ms=self._timeout_ms
            )
        except KafkaError as error:
            logger.debug("broker %d was not asked: %s", broker, error)
            for item in items:
                item.failed(error.code)
            return
        try:
            self._answered(items, response)
        except Exception:  # the boundary around a background loop
            logger.exception("an answer of broker %d is of no use", broker)
            for item in items:
                item.failed(ErrorCode.UNKNOWN_SERVER_ERROR)
