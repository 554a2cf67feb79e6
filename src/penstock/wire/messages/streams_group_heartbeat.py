"""StreamsGroupHeartbeat (key 88); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64, uint16


class KeyValue(Message):
    key: str = ""
    value: str = ""


class TopicInfo(Message):
    name: str = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Message):
    source_topics: list[int16] = []
    source_topic_regex: list[int16] = []
    repartition_source_topics: list[int16] = []


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: list[str] = []
    source_topic_regex: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class Topology(Message):
    epoch: int32 = 0
    subtopologies: list[Subtopology] = []


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int32] = []


class Endpoint(Message):
    host: str = ""
    port: uint16 = 0


class TaskOffset(Message):
    subtopology_id: str = ""
    partition: int32 = 0
    offset: int64 = 0


class StreamsGroupHeartbeatRequest(Message):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int32 = 0
    endpoint_information_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int32 = -1
    topology: Topology | None = None
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False


class Status(Message):
    status_code: int8 = 0
    status_detail: str = ""


class TopicPartition(Message):
    topic: str = ""
    partitions: list[int32] = []


class EndpointToPartitions(Message):
    user_endpoint: Endpoint = Endpoint()
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    acceptable_recovery_lag_legacy: Annotated[int32, V("0")] = 0
    task_offset_interval_ms: int32 = 0
    acceptable_recovery_lag: Annotated[int64, V("1+")] = -1
    status: list[Status] | None = []
    active_tasks: list[TaskIds] | None = None
    standby_tasks: list[TaskIds] | None = None
    warmup_tasks: list[TaskIds] | None = None
    topology_description_required: Annotated[bool, V("1+")] = False
    endpoint_information_epoch: int32 = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
