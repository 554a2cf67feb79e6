"""The controller's orders on their way to one broker: in order, one at a time, until it is gone."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from penstock.broker.peers.connection import PeerConnection
from penstock.controller.control_requests import ControlRequest
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.apis import api_of
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from penstock.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from penstock.wire.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from penstock.wire.schema import Message

logger = logging.getLogger(__name__)

RETRY_S, RETRY_MAX_S = 0.1, 1.0

STALE = frozenset({ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH})
"""The broker's epoch or the controller's has passed: nothing more is to be said in it."""

ANSWERS: dict[type[Message], type[Message]] = {
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    StopReplicaRequest: StopReplicaResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
}

Answered = Callable[[ControlRequest, Message], object]


class Channel:
    """To one broker in one of its lives. What was sent may arrive twice: orders are idempotent.

    `refused` hears that nobody listens there any more, `answered` each order's answer.
    """

    def __init__(
        self,
        connection: PeerConnection,
        answered: Answered,
        refused: Callable[[], object],
        timeout_ms: int,
    ) -> None:
        self._connection, self._timeout_ms = connection, timeout_ms
        self._answered, self._refused = answered, refused
        self._orders: deque[ControlRequest] = deque()
        self._more = asyncio.Event()
        self._refusals = 0
        """Of the first order, in a row."""

    @property
    def is_idle(self) -> bool:
        """Everything so far has been answered."""
        return not self._orders

    def forget(self) -> None:
        """The broker is gone; whoever listens there next has yet to be heard."""
        self._connection.forget()

    def send(self, orders: list[ControlRequest]) -> None:
        self._orders += orders
        self._more.set()

    async def run(self) -> None:
        """Send until cancelled. A broker that goes silent is asked again and again: the store
        says when it is dead.
        """
        try:
            while True:
                self._more.clear()
                if not self._orders:
                    await self._watch_connection()
                    continue
                if not await self._send_first():
                    await asyncio.sleep(min(RETRY_S * 2**self._refusals, RETRY_MAX_S))
        finally:
            self._connection.drop()

    async def _watch_connection(self) -> None:
        """Wait for orders; a connection that is lost meanwhile is opened again, which tells
        whether anybody is there.
        """
        try:
            connection = await self._connection.opened()
        except KafkaError as error:
            self._heard_nothing(error)
            await asyncio.sleep(RETRY_S)
            return
        async with asyncio.TaskGroup() as either:
            waits = [
                either.create_task(self._more.wait()),
                either.create_task(connection.wait_closed()),
            ]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

    async def _send_first(self) -> bool:
        order = self._orders[0]
        try:
            answer = await self._connection.call(
                order, ANSWERS[type(order)], timeout_ms=self._timeout_ms
            )
        except KafkaError as error:
            self._heard_nothing(error)
            return False
        code = getattr(answer, "error_code", ErrorCode.NONE)
        if code != ErrorCode.NONE:
            logger.info("%s was refused: %s", api_of(type(order)).name, ErrorCode(code).name)
            if code not in STALE:
                # It could not carry the order out, as without its connection to the store.
                # Nobody else would say it again: a new partition would never have its log.
                self._refusals = min(self._refusals + 1, 10)
                return False
            # The store tells soon, and then this channel ends.
        self._refusals = 0
        self._orders.popleft()
        self._answered(order, answer)
        return True

    def _heard_nothing(self, error: KafkaError) -> None:
        logger.debug("a broker is not reached: %s", error)
        if self._connection.is_dead(error):
            self._refused()
