"""What rises out of one request ends its connection at most."""

import asyncio
from typing import Any, cast

from penstock.broker.server import Server
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.wire.schema import Message


class Refused(KafkaError):
    code = ErrorCode.NOT_CONTROLLER


class Session:
    """Of an API whose response has no field for an error."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def refuse(self, error: KafkaError) -> None:
        raise ProtocolError(f"cannot be answered: {error}")

    def close(self, reason: str) -> None:
        self.closed.append(reason)


def test_a_refusal_that_cannot_be_told_closes_the_connection_and_nothing_else() -> None:
    async def refused() -> Message | None:
        raise Refused("not the controller")

    async def main() -> None:
        session = Session()
        async with asyncio.TaskGroup() as tasks:
            loop = asyncio.get_running_loop()
            nothing = cast("Any", None)
            server = Server(loop, tasks, nothing, nothing, nothing)
            server.run(cast("Any", refused()), cast("Any", session))
        assert session.closed == ["cannot be answered: not the controller"]

    asyncio.run(main())
