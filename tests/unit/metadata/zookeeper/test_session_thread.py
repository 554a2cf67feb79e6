"""What the session's thread passes to the loop, driven by kazoo's own calls without a server."""

import pytest
from kazoo.exceptions import ConnectionLoss
from kazoo.protocol.serialization import GetData
from kazoo.protocol.states import KeeperState

from penstock.config.connect_string import ConnectString
from penstock.metadata.zookeeper.session import SessionKey, SessionThread

REQUEST = GetData("/a", None)


class Recorded:
    """Events in order."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def connected(self, connection: int, key: SessionKey) -> None:  # noqa: ARG002
        self.events.append(connection)

    def disconnected(self) -> None:
        self.events.append("disconnected")

    def expired(self) -> None:
        self.events.append("expired")


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def session(recorded: Recorded) -> SessionThread:
    session = SessionThread(ConnectString.parse("nowhere:1"), 4000, recorded)
    session._connection._write_sock = Woken()
    return session


class Woken:
    """The socket that would wake kazoo's thread."""

    def send(self, data: bytes) -> int:
        return len(data)


def pass_through(session: SessionThread, *states: str) -> None:
    for state in states:
        session._session_callback(state)


def test_each_connection_has_a_number(session: SessionThread, recorded: Recorded) -> None:
    pass_through(
        session,
        KeeperState.CONNECTING,
        KeeperState.CONNECTED,
        KeeperState.CONNECTING,
        KeeperState.CONNECTING,
        KeeperState.CONNECTED,
        KeeperState.CONNECTING,
        KeeperState.EXPIRED_SESSION,
        KeeperState.CONNECTING,
        KeeperState.CONNECTED,
    )
    assert recorded.events == [1, "disconnected", 2, "disconnected", "expired", 3]


def test_nothing_is_queued_for_the_next_connection(
    session: SessionThread, recorded: Recorded
) -> None:
    assert not session.submit(0, REQUEST, recorded.events.append)
    pass_through(session, KeeperState.CONNECTING, KeeperState.CONNECTED, KeeperState.CONNECTING)
    assert not session.submit(1, REQUEST, recorded.events.append)
    pass_through(session, KeeperState.CONNECTED)
    # The loop does not know yet that this is another connection, maybe another session.
    assert not session.submit(1, REQUEST, recorded.events.append)
    assert session.submit(2, REQUEST, recorded.events.append)
    assert [request for request, _ in session._queue] == [REQUEST]


def test_a_loss_is_reported_before_its_consequences(
    session: SessionThread, recorded: Recorded
) -> None:
    pass_through(session, KeeperState.CONNECTING, KeeperState.CONNECTED)
    session.submit(1, REQUEST, recorded.events.append)
    pass_through(session, KeeperState.CONNECTING)
    assert recorded.events[:2] == [1, "disconnected"]
    assert isinstance(recorded.events[2], ConnectionLoss)


def test_answers_are_passed_on_at_once(session: SessionThread, recorded: Recorded) -> None:
    pass_through(session, KeeperState.CONNECTING, KeeperState.CONNECTED)
    session.submit(1, REQUEST, recorded.events.append)
    ((_, result),) = session._queue
    result.set(b"answer")
    assert recorded.events == [1, b"answer"]


def test_retries_stay_short(session: SessionThread) -> None:
    retry = session._connection.retry_sleeper
    assert (retry.max_tries, retry.delay, retry.max_delay) == (-1, 0.02, 0.5)


def test_each_session_tries_all_servers_in_an_order_of_its_own() -> None:
    servers = [(f"127.0.0.{number}", 2181) for number in range(1, 9)]
    where = ConnectString(tuple(servers))
    orders = set()
    for _ in range(5):
        session = SessionThread(where, 4000, Recorded())
        rounds = [session._connection._expand_client_hosts() for _ in range(5)]
        assert sorted((host, port) for host, _, port in rounds[0]) == servers
        assert all(each == rounds[0] for each in rounds)
        orders.add(tuple(rounds[0]))
    assert len(orders) > 1
