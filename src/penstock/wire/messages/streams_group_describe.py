"""StreamsGroupDescribe (key 89); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int8, int16, int32, int64, uint16


class StreamsGroupDescribeRequest(Message):
    group_ids: list[str] = []
    include_authorized_operations: bool = False
    include_topology_description: Annotated[bool, V("1+")] = False


class KeyValue(Message):
    key: str = ""
    value: str = ""


class TopicInfo(Message):
    name: str = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[KeyValue] = []


class Subtopology(Message):
    subtopology_id: str = ""
    source_topics: list[str] = []
    repartition_sink_topics: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


class Topology(Message):
    epoch: int32 = 0
    subtopologies: list[Subtopology] | None = None


class Endpoint(Message):
    host: str = ""
    port: uint16 = 0


class TaskOffset(Message):
    subtopology_id: str = ""
    partition: int32 = 0
    offset: int64 = 0


class TaskIds(Message):
    subtopology_id: str = ""
    partitions: list[int32] = []


class Assignment(Message):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class Member(Message):
    member_id: str = ""
    member_epoch: int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int32 = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    is_classic: bool = False


class TopologyDescriptionNode(Message):
    name: Annotated[str, V("1+")] = ""
    node_type: Annotated[int8, V("1+")] = 0
    source_topics: Annotated[list[str], V("1+")] = []
    sink_topic: Annotated[str | None, V("1+")] = None
    stores: Annotated[list[str], V("1+")] = []
    successors: Annotated[list[str], V("1+")] = []


class TopologyDescriptionSubtopology(Message):
    subtopology_id: Annotated[str, V("1+")] = ""
    nodes: Annotated[list[TopologyDescriptionNode], V("1+")] = []


class TopologyDescriptionGlobalStore(Message):
    source: Annotated[TopologyDescriptionNode, V("1+")] = TopologyDescriptionNode()
    processor: Annotated[TopologyDescriptionNode, V("1+")] = TopologyDescriptionNode()


class TopologyDescription(Message):
    subtopologies: Annotated[list[TopologyDescriptionSubtopology], V("1+")] = []
    global_stores: Annotated[list[TopologyDescriptionGlobalStore], V("1+")] = []


class DescribedGroup(Message):
    error_code: int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: int32 = -2147483648
    topology_description: Annotated[TopologyDescription | None, V("1+")] = None
    topology_description_status: Annotated[int8, V("1+")] = 0
    assignor_name: Annotated[str | None, V("1+")] = None


class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int32 = 0
    groups: list[DescribedGroup] = []
