"""WriteTxnMarkers (key 27); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64


class WritableTxnMarkerTopic(Message):
    name: str = ""
    partition_indexes: list[int32] = []


class WritableTxnMarker(Message):
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int32 = 0
    transaction_version: Annotated[int8, V("2+")] = 0


class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    partition_index: int32 = 0
    error_code: int16 = 0


class WritableTxnMarkerTopicResult(Message):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    producer_id: int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = []
