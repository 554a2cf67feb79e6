"""A connection to another broker, opened on demand and reopened after a loss."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from penstock.client.address import Address
from penstock.client.connection import Connection, connect
from penstock.client.errors import ConnectionFailed, ConnectionRefused
from penstock.client.security import ClientSecurity
from penstock.errors import KafkaError
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)

CONNECT_TIMEOUT_MS = 3_000

BROKER_SOFTWARE = "penstock-broker"
"""The client software name of brokers: see `broker/handling/forwarding.py`."""


class PeerConnection:
    """Connects to the broker's current address. One request at a time. Belongs to the event loop.

    `source` is the local address: that of this broker's own listener, so that a network fault at
    that address affects both directions. `reached` has the addresses that this broker has connected
    to, shared by all its connections.
    """

    def __init__(
        self,
        address: Callable[[], Address | None],
        *,
        client_id: str,
        source: str | None,
        reached: set[Address],
        security: Callable[[], ClientSecurity],
    ) -> None:
        self._security = security
        self._address, self._client_id, self._source = address, client_id, source
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._reached = reached

    async def call(
        self, request: Message, response: type[R], *, timeout_ms: int, version: int | None = None
    ) -> R:
        async with self._turn:
            connection = await self.opened()
            return await connection.call(request, response, timeout_ms=timeout_ms, version=version)

    async def opened(self) -> Connection:
        """The connection; it is open as far as this side knows."""
        address = self._address()
        if address is None:
            raise ConnectionFailed("the broker's address is unknown")
        known = self._connection
        if known is not None and known.is_open and known.address == address:
            return known
        self.drop()
        security = self._security()
        self._connection = await connect(
            address,
            tls=security.tls,
            login=security.login,
            client_id=self._client_id,
            software=BROKER_SOFTWARE,
            source=self._source,
            timeout_ms=CONNECT_TIMEOUT_MS,
        )
        self._reached.add(address)
        return self._connection

    def is_process_gone(self, error: KafkaError) -> bool:
        """Whether a connection was refused at an address that was reached before: the process is
        gone.

        At other addresses a broker may not listen yet: Kafka registers before it listens.
        """
        return isinstance(error, ConnectionRefused) and self._address() in self._reached

    def forget_reached(self) -> None:
        """Forget that the address was reached: the next process there has not been reached yet."""
        address = self._address()
        if address is not None:
            self._reached.discard(address)

    def drop_if_moved(self) -> None:
        """Drop the connection if the address has changed, so that callers do not wait for a process
        that is stopped or hangs.
        """
        if self._connection is not None and self._connection.address != self._address():
            self.drop()

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.abort()
            self._connection = None
