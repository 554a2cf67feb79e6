"""An error in one request closes at most its own connection."""

import asyncio
from typing import Any, cast

from penstock.broker.net.server import Server
from penstock.clock import SystemClock
from penstock.config.network import NetworkConfig
from penstock.errors import ErrorCode, KafkaError, ProtocolError
from penstock.wire.schema import Message


class Refused(KafkaError):
    code = ErrorCode.NOT_CONTROLLER


class Session:
    """A session whose API has a response without an error field."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def refuse(self, error: KafkaError) -> None:
        raise ProtocolError(f"cannot be answered: {error}")

    def close(self, reason: str) -> None:
        self.closed.append(reason)


class Sending(Session):
    """A session whose client reads slowly, or that waits for requests."""

    peer = "slow"

    def __init__(self, active_at: float, *, sends: bool = True, works: bool = True) -> None:
        super().__init__()
        self.active_at = active_at
        self.is_sending = self.holds_files = sends
        self.has_work, self.is_busy = works, True


def serving(*sessions: Sending) -> Server:
    nothing = cast("Any", None)
    server = Server(nothing, nothing, nothing, nothing, nothing)
    server.sessions = cast("Any", dict.fromkeys(sessions, "host"))
    return server


def test_a_connection_with_an_unread_response_or_without_requests_is_idle() -> None:
    unread, waits, mute, new = (
        Sending(1.0),
        Sending(1.0, sends=False),
        Sending(1.0, sends=False, works=False),
        Sending(9.0),
    )
    server = serving(unread, waits, mute, new)
    server.close_those_idle_for(-1, 10.0)
    assert not any(each.closed for each in (unread, waits, mute, new)), "-1 is no limit"
    server.close_those_idle_for(5_000, 10.0)
    assert [bool(each.closed) for each in (unread, waits, mute, new)] == [True, False, True, False]


def test_a_client_that_does_not_log_in_is_closed_in_time() -> None:
    """Slow loris: a byte now and then does not keep the connection open."""
    late, new = Sending(9.0), Sending(9.0)
    server = serving(late, new)
    server._unauthenticated = cast("Any", {late: 4.0, new: 6.0})
    server.close_late_unauthenticated(5.0)
    assert [bool(each.closed) for each in (late, new)] == [True, False]


def test_the_slowest_reader_is_disconnected_to_free_its_files() -> None:
    waits, slower, slow = Sending(1.0, sends=False), Sending(2.0), Sending(3.0)
    assert serving(waits, slow, slower).shed()
    assert [bool(each.closed) for each in (waits, slower, slow)] == [False, True, False]
    assert not serving(waits).shed()


def test_an_error_without_a_field_for_it_closes_only_its_connection() -> None:
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


class Listening:
    """A listening socket with very many clients waiting."""

    def __init__(self) -> None:
        self.accepted = 0

    def accept(self) -> tuple["Listening", tuple[str, int]]:
        self.accepted += 1
        return self, ("10.0.0.1", self.accepted)

    def close(self) -> None: ...


class Full(Server):
    """A server that refuses every connection."""

    def _refresh(self) -> None:
        self._texts: dict[str, str] = {}

    def _may_connect(self, host: str) -> bool:
        return not host

    @property
    def _network(self) -> NetworkConfig:
        return NetworkConfig()


def test_a_crowd_of_clients_does_not_hold_up_requests() -> None:
    """Opening a connection takes as long as some requests, so few are opened in a turn."""
    nothing, listening = cast("Any", None), Listening()
    server = Full(nothing, nothing, nothing, nothing, SystemClock())
    server.limits.add_listener("CLIENTS")
    server._accept(cast("Any", listening), "CLIENTS")
    assert listening.accepted <= 10


class OfClients(Server):
    """A server to which no broker connects."""

    def _on_inter_broker_listener(self, session: object) -> bool:
        return session is None


def test_requests_beyond_queued_max_requests_wait_for_running_ones() -> None:
    async def main() -> None:
        begun: list[int] = []
        gate = asyncio.Event()

        async def work(number: int) -> Message | None:
            begun.append(number)
            await gate.wait()
            raise Refused("enough")

        async with asyncio.TaskGroup() as tasks:
            nothing = cast("Any", None)
            server = OfClients(asyncio.get_running_loop(), tasks, nothing, nothing, nothing)
            server.max_requests = 2
            stranger = cast("Any", Session())
            server._unauthenticated[stranger] = 1.0
            server.run(cast("Any", work(-1)), stranger)  # a login takes no place in the queue
            for number in range(5):
                server.run(cast("Any", work(number)), cast("Any", Session()))
            await asyncio.sleep(0.01)
            assert begun == [-1, 0, 1]
            gate.set()
        assert begun == [-1, 0, 1, 2, 3, 4]

    asyncio.run(main())
