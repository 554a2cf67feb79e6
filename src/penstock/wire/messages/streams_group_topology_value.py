"""StreamsGroupTopologyValue; written by codegen."""

from penstock.wire.schema import Message, int16, int32


class TopicConfig(Message):
    key: str = ""
    value: str = ""


class TopicInfo(Message):
    name: str = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[TopicConfig] = []


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


class StreamsGroupTopologyValue(Message):
    epoch: int32 = 0
    subtopologies: list[Subtopology] = []
