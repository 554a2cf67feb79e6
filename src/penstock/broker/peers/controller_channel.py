"""Sends the controller's requests to one broker: in order, one at a time, until it is gone."""

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
"""The broker epoch or the controller epoch has passed: sending again is useless."""

RESPONSES: dict[type[Message], type[Message]] = {
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    StopReplicaRequest: StopReplicaResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
}

OnResponse = Callable[[ControlRequest, Message], object]


class ControllerChannel:
    """The channel to one broker in one broker epoch. A request may arrive twice; all are
    idempotent.

    Calls `on_response` for each request, and `on_refused` when the broker's process is gone.
    """

    def __init__(
        self,
        connection: PeerConnection,
        on_response: OnResponse,
        on_refused: Callable[[], object],
        timeout_ms: int,
    ) -> None:
        self._connection, self._timeout_ms = connection, timeout_ms
        self._on_response, self._on_refused = on_response, on_refused
        self._requests: deque[ControlRequest] = deque()
        self._more = asyncio.Event()
        self._refusals = 0
        """Consecutive refusals of the first request."""

    @property
    def is_idle(self) -> bool:
        """Whether all requests have been answered."""
        return not self._requests

    def forget(self) -> None:
        """Mark the address as not reached: this broker is gone, the next process there is new."""
        self._connection.forget_reached()

    def send(self, requests: list[ControlRequest]) -> None:
        self._requests += requests
        self._more.set()

    async def run(self) -> None:
        """Send until cancelled. A silent broker is retried until its registration is gone."""
        try:
            while True:
                self._more.clear()
                if not self._requests:
                    await self._watch_connection()
                    continue
                if not await self._send_first():
                    await asyncio.sleep(min(RETRY_S * 2**self._refusals, RETRY_MAX_S))
        finally:
            self._connection.drop()

    async def _watch_connection(self) -> None:
        """Wait for requests. A connection lost meanwhile is reopened, to check that the broker
        still listens.
        """
        try:
            connection = await self._connection.opened()
        except KafkaError as error:
            self._unreachable(error)
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
        request = self._requests[0]
        try:
            response = await self._connection.call(
                request, RESPONSES[type(request)], timeout_ms=self._timeout_ms
            )
        except KafkaError as error:
            self._unreachable(error)
            return False
        code = getattr(response, "error_code", ErrorCode.NONE)
        if code != ErrorCode.NONE:
            logger.info("broker refused %s: %s", api_of(type(request)).name, ErrorCode(code).name)
            if code not in STALE:
                # The broker failed, for example because it lost its connection to the store. Send
                # the request again: otherwise a new partition would never get its log.
                self._refusals = min(self._refusals + 1, 10)
                return False
            # Not resent: a watch fires soon, and this channel is closed.
        self._refusals = 0
        self._requests.popleft()
        self._on_response(request, response)
        return True

    def _unreachable(self, error: KafkaError) -> None:
        logger.debug("cannot reach a broker: %s", error)
        if self._connection.is_process_gone(error):
            self._on_refused()
