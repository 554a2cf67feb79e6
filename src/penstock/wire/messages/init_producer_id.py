"""InitProducerId (key 22); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class InitProducerIdRequest(Message):
    transactional_id: str | None = ""
    transaction_timeout_ms: int32 = 0
    producer_id: Annotated[int64, V("3+")] = -1
    producer_epoch: Annotated[int16, V("3+")] = -1


class InitProducerIdResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: int64 = -1
    producer_epoch: int16 = 0
