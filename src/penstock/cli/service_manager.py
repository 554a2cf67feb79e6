"""Tells systemd how far the broker is (`Type=notify`); nothing where no NOTIFY_SOCKET is set."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """`READY=1`, `STOPPING=1`. The broker runs on if nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # of the abstract namespace
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(state.encode(), address)
