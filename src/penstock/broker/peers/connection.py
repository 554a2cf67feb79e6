"""A connection to another broker that is opened when it is needed, and again after it was lost."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock.client.address import Address
from penstock.client.connection import Connection, connect
from penstock.client.errors import ConnectionFailed, ConnectionRefused
from penstock.errors import KafkaError
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

CONNECT_TIMEOUT_MS = 3_000


class PeerConnection:
    """To whichever address holds at the time. One request at a time. Belongs to the event loop.

    `source` is the address that this broker speaks from: that of its own listener, so that what
    cuts a broker off by its address cuts off both directions. `heard` are the addresses at which
    somebody has listened, shared by all connections of this broker.
    """

    def __init__(
        self,
        address: Callable[[], Address | None],
        *,
        client_id: str,
        source: str | None,
        heard: set[Address],
    ) -> None:
        self._address, self._client_id, self._source = address, client_id, source
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._heard = heard

    async def call(
        self, request: Message, answer: type[R], *, timeout_ms: int, version: int | None = None
    ) -> R:
        async with self._turn:
            connection = await self.opened()
            return await connection.call(request, answer, timeout_ms=timeout_ms, version=version)

    async def opened(self) -> Connection:
        """The connection, open as far as can be known."""
        address = self._address()
        if address is None:
            raise ConnectionFailed("the broker's address is not known")
        known = self._connection
        if known is not None and known.is_open and known.address == address:
            return known
        self.drop()
        self._connection = await connect(
            address,
            client_id=self._client_id,
            source=self._source,
            timeout_ms=CONNECT_TIMEOUT_MS,
        )
        self._heard.add(address)
        return self._connection

    def is_dead(self, error: KafkaError) -> bool:
        """Nobody listens where somebody has: the process is gone.

        Where nobody ever has, a broker may have registered and not listen yet, as Kafka does.
        """
        return isinstance(error, ConnectionRefused) and self._address() in self._heard

    def forget(self) -> None:
        """Whoever listens there from now on has not been heard yet."""
        address = self._address()
        if address is not None:
            self._heard.discard(address)

    def follow(self) -> None:
        """Drop a connection to an address that holds no more: who waits for an answer need not wait
        until a process that stands still goes on.
        """
        if self._connection is not None and self._connection.address != self._address():
            self.drop()

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
