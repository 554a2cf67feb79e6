"""Sends transaction markers to partition leaders on other brokers (WriteTxnMarkers)."""

import asyncio
from collections.abc import Callable

import msgspec

from penstock.broker.peers.outbox import Link, Outbox
from penstock.coordinator.transaction.completion import TransactionMarker
from penstock.coordinator.transaction.transaction_metadata import EPOCH_BUMP_VERSION
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
    """One transaction's markers for one broker; `answered` gets each partition's error code."""

    marker: TransactionMarker
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]
    answered: Callable[[TopicPartition, int], object]

    def failed(self, code: ErrorCode) -> None:
        for tp in self.partitions:
            self.answered(tp, code)


MarkerOutbox = Outbox[RemoteMarker, WriteTxnMarkersResponse]


def marker_outbox(
    tasks: asyncio.TaskGroup, connection_to: Callable[[BrokerId], Link]
) -> MarkerOutbox:
    return Outbox(
        tasks, connection_to, markers_request, WriteTxnMarkersResponse, answer_all, TIMEOUT_MS
    )


def markers_request(markers: list[RemoteMarker]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(markers=[_writable(each) for each in markers])


def _writable(remote: RemoteMarker) -> WritableTxnMarker:
    marker = remote.marker
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in indexes_by_topic(remote.partitions).items()
        ],
        coordinator_epoch=remote.coordinator_epoch,
        transaction_version=EPOCH_BUMP_VERSION if marker.bumps_epoch else 0,
    )


def answer_all(markers: list[RemoteMarker], response: WriteTxnMarkersResponse) -> None:
    """Pass each partition's code on; a partition that the response lacks is sent again."""
    codes = {
        (each.producer_id, TopicPartition(topic.name, result.partition_index)): result.error_code
        for each in response.markers
        for topic in each.topics
        for result in topic.partitions
    }
    for remote in markers:
        for tp in remote.partitions:
            key = (remote.marker.producer_id, tp)
            remote.answered(tp, codes.get(key, ErrorCode.UNKNOWN_SERVER_ERROR))
