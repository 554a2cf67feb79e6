"""Ends the session of another client, which then finds that it has expired."""

import socket
import struct

from kazoo.protocol.serialization import Connect

CLOSE_SESSION = struct.pack(">iii", 8, 1, -11)
"""Frame size; xid, operation."""


def end_session(port: int, session_id: int, password: bytes) -> None:
    """Resumes the session by its password and closes it in one write: its owner would resume it at
    once.
    """
    connect = bytes(Connect(0, 0, 4000, session_id, password, False).serialize())
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(struct.pack(">i", len(connect)) + connect + CLOSE_SESSION)
        while link.recv(4096):
            pass
