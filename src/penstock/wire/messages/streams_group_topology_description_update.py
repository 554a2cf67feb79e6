"""StreamsGroupTopologyDescriptionUpdate (key 93); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class TopologyDescriptionNode(Message):
    name: str = ""
    node_type: int8 = 0
    source_topics: list[str] = []
    sink_topic: str | None = None
    stores: list[str] = []
    successors: list[str] = []


class TopologyDescriptionSubtopology(Message):
    subtopology_id: str = ""
    nodes: list[TopologyDescriptionNode] = []


class TopologyDescriptionGlobalStore(Message):
    source: TopologyDescriptionNode = TopologyDescriptionNode()
    processor: TopologyDescriptionNode = TopologyDescriptionNode()


class TopologyDescription(Message):
    subtopologies: list[TopologyDescriptionSubtopology] = []
    global_stores: list[TopologyDescriptionGlobalStore] = []


class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    group_id: str = ""
    member_id: str = ""
    topology_epoch: int32 = 0
    topology_description: TopologyDescription = TopologyDescription()


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = None
