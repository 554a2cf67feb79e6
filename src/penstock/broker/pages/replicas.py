"""The HTTP page of this broker's replicas, as JSON: roles, end offsets, high watermarks."""

from http import HTTPStatus
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct

from penstock.http.message import HttpRequest, HttpResponse, plain
from penstock.http.server import Handler
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId

JSON = "application/json"


class Replica(Struct, frozen=True):
    """One replica as its own broker sees it; `isr` is empty on a follower."""

    broker: int
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    follower_ends: dict[int, int] = {}
    """Followers' end offsets, which a leader knows by their fetches; -1 before the first."""


def replicas(broker_id: BrokerId, partitions: Partitions) -> Handler:
    """`?topic=NAME`."""

    def handler(request: HttpRequest) -> HttpResponse:
        names = parse_qs(request.query, keep_blank_values=True).get("topic", [])
        if len(names) != 1:
            return plain(HTTPStatus.BAD_REQUEST, "name one topic: ?topic=NAME")
        found = [
            _replica(broker_id, each)
            for each in partitions
            if each.topic_partition.topic == names[0]
        ]
        return HttpResponse(content_type=JSON, body=msgspec.json.encode(found))

    return handler


def _replica(broker_id: BrokerId, partition: Partition) -> Replica:
    log = partition.log
    return Replica(
        broker_id,
        *partition.topic_partition,
        partition.leader,
        partition.leader_epoch,
        partition.replicas,
        partition.isr,
        log.log_start_offset,
        log.high_watermark,
        log.end_offset,
        {broker: state.end_offset for broker, state in partition.followers.items()},
    )
