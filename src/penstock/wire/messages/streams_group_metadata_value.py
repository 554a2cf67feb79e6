"""StreamsGroupMetadataValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int32, int64


class LastAssignmentConfig(Message):
    key: str = ""
    value: str = ""


class StreamsGroupMetadataValue(Message):
    epoch: int32 = 0
    metadata_hash: int64 = 0
    validated_topology_epoch: Annotated[int32, V("0+", tag=0)] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, V("0+", tag=1)] = []
