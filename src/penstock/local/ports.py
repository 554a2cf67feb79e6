"""Finds free loopback ports."""

import random
import socket
from contextlib import ExitStack

LOW, HIGH = 15_000, 32_000
"""Below the kernel's ephemeral ports, which outgoing connections could take."""


def free_ports(count: int = 1) -> int:
    """The first of `count` consecutive ports that are free on every loopback address."""
    while True:
        first = random.randrange(LOW, HIGH - count)  # noqa: S311  only avoids collisions
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    probe = held.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
            except OSError:
                continue
            return first
