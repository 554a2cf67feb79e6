"""Metadata (key 3); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int16, int32


class MetadataRequestTopic(Message):
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    name: Annotated[str | None, V("0+", nullable="10+")] = ""


class MetadataRequest(Message):
    topics: Annotated[list[MetadataRequestTopic] | None, V("0+", nullable="1+")] = []
    allow_auto_topic_creation: Annotated[bool, V("4+")] = True
    include_cluster_authorized_operations: Annotated[bool, V("8-10")] = False
    include_topic_authorized_operations: Annotated[bool, V("8+")] = False


class MetadataResponseBroker(Message):
    node_id: int32 = 0
    host: str = ""
    port: int32 = 0
    rack: Annotated[str | None, V("1+")] = None


class MetadataResponsePartition(Message):
    error_code: int16 = 0
    partition_index: int32 = 0
    leader_id: int32 = 0
    leader_epoch: Annotated[int32, V("7+")] = -1
    replica_nodes: list[int32] = []
    isr_nodes: list[int32] = []
    offline_replicas: Annotated[list[int32], V("5+")] = []


class MetadataResponseTopic(Message):
    error_code: int16 = 0
    name: Annotated[str | None, V("0+", nullable="12+")] = ""
    topic_id: Annotated[Uuid, V("10+")] = NO_UUID
    is_internal: Annotated[bool, V("1+")] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[int32, V("8+")] = -2147483648


class MetadataResponse(Message):
    throttle_time_ms: Annotated[int32, V("3+")] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[str | None, V("2+")] = None
    controller_id: Annotated[int32, V("1+")] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[int32, V("8-10")] = -2147483648
    error_code: Annotated[int16, V("13+")] = 0
