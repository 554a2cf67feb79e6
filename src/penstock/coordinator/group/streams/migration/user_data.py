"""The user data of Kafka Streams in the classic protocol, as Java's `DataOutputStream` writes it.

A member sends `SubscriptionInfo`: versions, process, the state it has, its endpoint. It expects
`AssignmentInfo`: its tasks, in the order of its sorted partitions, and the partitions at each
endpoint. Both have the same version number. From version 7 on (Kafka Streams 2.6) the fields that
are needed here stay where they are; version 10 added a name to each task.
"""

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.coordinator.group.streams.endpoints import EndpointPartitions
from penstock.coordinator.group.streams.member import StreamsEndpoint
from penstock.coordinator.group.streams.task import TaskId
from penstock.errors import ProtocolError

OLDEST, NEWEST = 7, 11
NAMED_TASKS = 10
"""The version since which the name of a topology follows each task."""
NO_ERROR, NO_FOLLOWUP_MS = 0, (1 << 63) - 1
LAST_PORT, LONGEST_HOST = 65_535, 255

_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
"""The pattern by which Kafka reads `application.server`.

A member has to find its own endpoint in its assignment.
"""

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_HEAD = struct.Struct(">ii16si")


class MemberUserData(NamedTuple):
    """The parts of a `SubscriptionInfo` that the coordinator needs."""

    version: int
    process_id: str
    endpoint: StreamsEndpoint | None
    is_ignored: bool = False
    """Whether its endpoint is left out because other members could not read it."""


def read_user_data(data: bytes | None) -> MemberUserData:
    """`ProtocolError` if the bytes are not a subscription of Kafka Streams 2.6 or later."""
    if data is None or len(data) < _HEAD.size:
        raise ProtocolError("the subscription has no user data of Kafka Streams")
    version, _, process, length = _HEAD.unpack_from(data)
    if not OLDEST <= version <= NEWEST:
        raise ProtocolError(f"version {version} of Kafka Streams' user data is not known")
    text = bytes(data[_HEAD.size : _HEAD.size + max(length, 0)]).decode(errors="replace")
    endpoint = _endpoint(text)
    return MemberUserData(version, _uuid(process), endpoint, bool(text) and endpoint is None)


def _uuid(data: bytes) -> str:
    """The UUID as Java writes it, and as heartbeats of the streams protocol have it."""
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _endpoint(text: str) -> StreamsEndpoint | None:
    """The endpoint; None if there is none, or if it is malformed and would harm other members."""
    found = _ADDRESS.fullmatch(text)
    if found is None or len(found[2]) > len(str(LAST_PORT)):
        return None
    endpoint = StreamsEndpoint(found[1], int(found[2]))
    return endpoint if _is_readable(endpoint) else None


def _is_readable(endpoint: StreamsEndpoint) -> bool:
    """Whether Kafka Streams can read it in an assignment."""
    host, port = endpoint
    return 0 < len(host) <= LONGEST_HOST and host.isascii() and 0 <= port <= LAST_PORT


def assignment_user_data(
    version: int, tasks: Sequence[TaskId], hosts: Iterable[EndpointPartitions]
) -> bytes:
    """An `AssignmentInfo` without standbys. `tasks` has one entry per partition, in their order.

    Members of the streams protocol may send any text as an endpoint; one that is not a host is left
    out.
    """
    parts = [_INT.pack(version), _INT.pack(version), _INT.pack(len(tasks))]
    for subtopology, partition in tasks:
        parts += [_INT.pack(int(subtopology)), _INT.pack(partition)]
        if version >= NAMED_TASKS:
            parts.append(_INT.pack(0))
    parts.append(_INT.pack(0))
    parts += _hosts([each for each in hosts if _is_readable(each.endpoint)])
    parts += [_INT.pack(NO_ERROR), _LONG.pack(NO_FOLLOWUP_MS)]
    return b"".join(parts)


def _hosts(hosts: list[EndpointPartitions]) -> list[bytes]:
    """A dictionary of topics, then active and standby partitions by endpoint."""
    names = sorted({name for each in hosts for name in (*each.active, *each.standby)})
    numbers = {name: number for number, name in enumerate(names)}
    parts = [_INT.pack(len(names))]
    for name, number in numbers.items():
        parts += [_INT.pack(number), _text(name)]
    for role in ("active", "standby"):
        parts.append(_INT.pack(len(hosts)))
        for each in hosts:
            held: Mapping[str, list[int]] = getattr(each, role)
            parts += [_text(each.endpoint.host), _INT.pack(each.endpoint.port)]
            pairs = [(numbers[name], index) for name in held for index in held[name]]
            parts.append(_INT.pack(len(pairs)))
            parts += [_INT.pack(number) for pair in pairs for number in pair]
    return parts


def _text(text: str) -> bytes:
    """The text as Java's `writeUTF` writes it: as UTF-8, since hosts and topics are ASCII."""
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
