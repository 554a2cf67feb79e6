"""Checks over a bare socket whether a server answers: no client library, no retries, no log."""

import socket
import struct

_METADATA_V1 = struct.Struct(">ihhihi")
"""Frame size; API key, version, correlation id, null client id; an array of no topics."""


def live_brokers(port: int) -> set[int]:
    """The ids of the brokers that the one at `port` knows to be alive; empty while it does not
    answer.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(_METADATA_V1.pack(_METADATA_V1.size - 4, 3, 1, 0, -1, 0))
            with link.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return parsed_brokers(answer.read(size))
    except (OSError, struct.error):  # refused, reset, or closed during the response
        return set()


def parsed_brokers(answer: bytes) -> set[int]:
    """The broker ids of a Metadata v1 response: correlation id, [id, host, port, rack], ..."""
    (count,), at = struct.unpack_from(">i", answer, 4), 8
    ids = set()
    for _ in range(count):
        broker, host_bytes = struct.unpack_from(">ih", answer, at)
        at += 4 + 2 + host_bytes + 4
        (rack_bytes,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_bytes, 0)
        ids.add(broker)
    return ids


def zookeeper_mode(port: int) -> str | None:
    """`standalone`, `leader` or `follower` once the server serves, by the four letters `srvr`."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as link:
            link.sendall(b"srvr")
            with link.makefile("rb") as answer:
                lines = answer.read().decode().splitlines()
    except OSError:
        return None
    return next((line[6:] for line in lines if line.startswith("Mode: ")), None)
