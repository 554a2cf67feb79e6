"""Topics for measurements, created over a bare socket.

A client library would keep connections and threads during the load, and its cached metadata took up
to a minute to show some new topics.
"""

import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from peers.process import PeerError, wait_until
from penstock.wire.apis import APIS
from penstock.wire.client_frame import read_response_header, request_frame
from penstock.wire.codec import decoder
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
LIST_OFFSETS, CREATE_TOPICS, DELETE_TOPICS = 2, 19, 20
LATEST = -1
TIMEOUT_S = 60


@contextmanager
def topic(
    port: int, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic, deleted at the end; every partition is served before the block starts."""
    create(port, name, partitions, config or {})
    # The leader in Metadata may not know yet that it leads.
    wait_until(lambda: end_offsets(port, name, partitions) is not None, TIMEOUT_S, name)
    try:
        yield name
    finally:
        delete(port, name)


def create(port: int, name: str, partitions: int, config: Mapping[str, str]) -> None:
    wanted = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in config.items()],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_S * 1000)
    (made,) = ask(port, CREATE_TOPICS, 5, request, CreateTopicsResponse).topics
    if made.error_code:
        raise PeerError(f"{name} was not created: {made.error_code} {made.error_message}")


def delete(port: int, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_S * 1000)
    (gone,) = ask(port, DELETE_TOPICS, 5, request, DeleteTopicsResponse).responses
    if gone.error_code:
        raise PeerError(f"{name} was not deleted: {gone.error_code} {gone.error_message}")


def end_offsets(port: int, name: str, partitions: int) -> list[int] | None:
    """End offsets by partition; None while any partition is not served."""
    ends = [ListOffsetsPartition(partition_index=at, timestamp=LATEST) for at in range(partitions)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=ends)]
    )
    (found,) = ask(port, LIST_OFFSETS, 6, request, ListOffsetsResponse).topics
    if any(each.error_code for each in found.partitions):
        return None
    offsets = {each.partition_index: each.offset for each in found.partitions}
    return [offsets[at] for at in range(partitions)]


def ask(port: int, key: int, version: int, request: Message, answer: type[R]) -> R:
    """Sends one request on its own connection."""
    api = APIS[key]
    with (
        socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as link,
        link.makefile("rb") as incoming,
    ):
        link.sendall(request_frame(api, version, 0, "bench", request))
        head = incoming.read(4)
        if not head:
            raise PeerError(f"the broker closed the connection on {api.name} v{version}")
        (size,) = struct.unpack(">i", head)
        frame = incoming.read(size)
    return decoder(answer, version)(frame, read_response_header(frame, api, version)[1])[0]
