"""ListTransactions (key 66); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class ListTransactionsRequest(Message):
    state_filters: list[str] = []
    producer_id_filters: list[int64] = []
    duration_filter: Annotated[int64, V("1+")] = -1
    transactional_id_pattern: Annotated[str | None, V("2+")] = None


class TransactionState(Message):
    transactional_id: str = ""
    producer_id: int64 = 0
    transaction_state: str = ""


class ListTransactionsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
