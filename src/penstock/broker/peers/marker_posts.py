"""Markers for partitions that other brokers lead, on their way there (WriteTxnMarkers)."""

import asyncio
from collections.abc import Callable

import msgspec

from penstock.broker.peers.outbox import Link, Outbox
from penstock.coordinator.transaction.completion import Verdict
from penstock.coordinator.transaction.transaction import EPOCH_BUMPS
from penstock.errors import ErrorCode
from penstock.types import BrokerId, TopicPartition, indexes_by_topic
from penstock.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TIMEOUT_MS = 35_000
"""Longer than a leader waits for its followers."""


class RemoteMarker(msgspec.Struct, frozen=True):
    """One transaction's markers for one broker; `answered` hears of each partition."""

    verdict: Verdict
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    answered: Callable[[TopicPartition, int], object]

    def failed(self, code: ErrorCode) -> None:
        for where in self.partitions:
            self.answered(where, code)


MarkerPosts = Outbox[RemoteMarker, WriteTxnMarkersResponse]


def marker_posts(
    tasks: asyncio.TaskGroup, connection_to: Callable[[BrokerId], Link]
) -> MarkerPosts:
    return Outbox(tasks, connection_to, markers_request, WriteTxnMarkersResponse, tell, TIMEOUT_MS)


def markers_request(markers: list[RemoteMarker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_writable(each) for each in markers])


def _writable(marker: RemoteMarker) -> WritableTxnMarker:
    verdict = marker.verdict
    return WritableTxnMarker(
        producer_id=verdict.producer_id,
        producer_epoch=verdict.producer_epoch,
        transaction_result=verdict.committed,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in indexes_by_topic(marker.partitions).items()
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=EPOCH_BUMPS if verdict.bumps_epoch else 0,
    )


def tell(markers: list[RemoteMarker], response: WriteTxnMarkersResponse) -> None:
    """To each what became of it; a partition that the answer leaves out is asked again."""
    codes = {
        (each.producer_id, TopicPartition(topic.name, result.partition_index)): result.error_code
        for each in response.markers
        for topic in each.topics
        for result in topic.partitions
    }
    for marker in markers:
        for where in marker.partitions:
            key = (marker.verdict.producer_id, where)
            marker.answered(where, codes.get(key, ErrorCode.UNKNOWN_SERVER_ERROR))
