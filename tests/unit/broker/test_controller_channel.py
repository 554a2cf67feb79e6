"""A control request is repeated until the broker accepts it or its epoch has passed."""

import asyncio
from typing import Any, cast

import pytest

from penstock.broker.peers.controller_channel import ControllerChannel
from penstock.controller.control_requests import ControlRequest
from penstock.errors import ErrorCode
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from penstock.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from penstock.wire.schema import Message


class Peer:
    """A broker that answers with these error codes in turn, then without errors."""

    def __init__(self, *codes: ErrorCode) -> None:
        self.codes, self.requests = list(codes), list[Message]()

    async def call(self, request: Message, answer: type[Message], **_: int) -> Message:
        self.requests.append(request)
        code = self.codes.pop(0) if self.codes else ErrorCode.NONE
        response: Message = cast("Any", answer)(error_code=code)
        return response

    async def opened(self) -> "Peer":
        return self

    async def wait_closed(self) -> None:
        await asyncio.Event().wait()

    def drop(self) -> None: ...


@pytest.mark.parametrize(
    ("codes", "sent"),
    [
        ([], ["LeaderAndIsr", "StopReplica"]),
        # The broker had no connection to the store.
        ([ErrorCode.REQUEST_TIMED_OUT], ["LeaderAndIsr", "LeaderAndIsr", "StopReplica"]),
        # The broker has registered again, or knows a newer controller.
        ([ErrorCode.STALE_BROKER_EPOCH], ["LeaderAndIsr", "StopReplica"]),
        ([ErrorCode.STALE_CONTROLLER_EPOCH], ["LeaderAndIsr", "StopReplica"]),
    ],
)
def test_a_request_that_failed_is_sent_again(codes: list[ErrorCode], sent: list[str]) -> None:
    async def main() -> None:
        peer, answered = Peer(*codes), list[tuple[ControlRequest, Message]]()
        channel = ControllerChannel(
            cast("Any", peer), lambda *each: answered.append(each), lambda: None, timeout_ms=1000
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(channel.run())
            channel.send([LeaderAndIsrRequest(), StopReplicaRequest()])
            async with asyncio.timeout(5):
                while len(answered) < 2:
                    await asyncio.sleep(0.01)
            running.cancel()
        names = [type(each).__name__.removesuffix("Request") for each in peer.requests]
        assert names == sent
        kinds = [type(answer) for _, answer in answered]
        assert kinds == [LeaderAndIsrResponse, StopReplicaResponse]

    asyncio.run(main())
