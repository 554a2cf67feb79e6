"""UpdateMetadata (key 6); written by codegen."""

from typing import Annotated

from penstock.types import NO_UUID, Uuid
from penstock.wire.schema import Message, V, int8, int16, int32, int64


class UpdateMetadataPartitionState(Message):
    topic_name: Annotated[str, V("0-4")] = ""
    partition_index: int32 = 0
    controller_epoch: int32 = 0
    leader: int32 = 0
    leader_epoch: int32 = 0
    isr: list[int32] = []
    zk_version: int32 = 0
    replicas: list[int32] = []
    offline_replicas: Annotated[list[int32], V("4+")] = []


class UpdateMetadataTopicState(Message):
    topic_name: Annotated[str, V("5+")] = ""
    topic_id: Annotated[Uuid, V("7+")] = NO_UUID
    partition_states: Annotated[list[UpdateMetadataPartitionState], V("5+")] = []


class UpdateMetadataEndpoint(Message):
    port: Annotated[int32, V("1+")] = 0
    host: Annotated[str, V("1+")] = ""
    listener: Annotated[str, V("3+")] = ""
    security_protocol: Annotated[int16, V("1+")] = 0


class UpdateMetadataBroker(Message):
    id: int32 = 0
    v0_host: Annotated[str, V("0")] = ""
    v0_port: Annotated[int32, V("0")] = 0
    endpoints: Annotated[list[UpdateMetadataEndpoint], V("1+")] = []
    rack: Annotated[str | None, V("2+", nullable="0+")] = ""


class UpdateMetadataRequest(Message):
    controller_id: int32 = 0
    is_k_raft_controller: Annotated[bool, V("8+")] = False
    type: Annotated[int8, V("8+", tag=0)] = 0
    controller_epoch: int32 = 0
    broker_epoch: Annotated[int64, V("5+")] = -1
    ungrouped_partition_states: Annotated[list[UpdateMetadataPartitionState], V("0-4")] = []
    topic_states: Annotated[list[UpdateMetadataTopicState], V("5+")] = []
    live_brokers: list[UpdateMetadataBroker] = []


class UpdateMetadataResponse(Message):
    error_code: int16 = 0
