"""UnregisterBroker (key 64); written by codegen."""

from penstock.wire.schema import Message, int16, int32


class UnregisterBrokerRequest(Message):
    broker_id: int32 = 0


class UnregisterBrokerResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
