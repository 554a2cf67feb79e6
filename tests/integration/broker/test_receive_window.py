"""How much a client may send before the broker reads it."""

import socket
from contextlib import closing

import pytest

from penstock.broker.net.server import MOST_WINDOW_BYTES, TCP_WINDOW_CLAMP, bind
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.config.network import DEFAULT_RECEIVE_BUFFER_BYTES, NetworkConfig

LINUX_SETS = 2
"""Linux doubles what a program asks for."""


def receive_bytes(configured: int) -> tuple[int, int]:
    """The buffer and the largest window of connections to a listener with this setting."""
    network = NetworkConfig(socket_receive_buffer_bytes=configured)
    with closing(
        bind(Endpoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", 0), network)
    ) as listening:
        assert TCP_WINDOW_CLAMP is not None
        return (
            listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            listening.getsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP),
        )


@pytest.mark.skipif(TCP_WINDOW_CLAMP is None, reason="Linux only")
def test_a_configured_receive_buffer_is_set_and_the_default_is_left_to_the_system() -> None:
    with closing(socket.socket()) as plain:
        of_system = plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    assert receive_bytes(DEFAULT_RECEIVE_BUFFER_BYTES) == (of_system, MOST_WINDOW_BYTES)
    assert receive_bytes(-1) == (of_system, MOST_WINDOW_BYTES)
    assert receive_bytes(65_536)[0] == LINUX_SETS * 65_536
