"""ConsumerGroupMetadataValue; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int32, int64


class ConsumerGroupMetadataValue(Message):
    epoch: int32 = 0
    metadata_hash: Annotated[int64, V("0+", tag=0)] = 0
