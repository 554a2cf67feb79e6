"""Notifies systemd of the broker's state (`Type=notify`); does nothing without NOTIFY_SOCKET."""

import os
import socket
from contextlib import suppress


def notify(state: str) -> None:
    """Send a state, such as `READY=1` or `STOPPING=1`. Errors are ignored."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # the abstract namespace
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.sendto(state.encode(), address)
