"""Loopback ports that nobody holds."""

import random
import socket
from contextlib import ExitStack

LOW, HIGH = 15_000, 32_000
"""Below the ports that the kernel hands to outgoing connections: any client could take those."""


def free_ports(count: int = 1) -> int:
    """The first of so many ports in a row, each free on every loopback address."""
    while True:
        first = random.randrange(LOW, HIGH - count)  # noqa: S311  only spreads
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    probe = held.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
            except OSError:
                continue
            return first
