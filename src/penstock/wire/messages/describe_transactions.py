"""DescribeTransactions (key 65); written by codegen."""

from penstock.wire.schema import Message, int16, int32, int64


class DescribeTransactionsRequest(Message):
    transactional_ids: list[str] = []


class TopicData(Message):
    topic: str = ""
    partitions: list[int32] = []


class TransactionState(Message):
    error_code: int16 = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int32 = 0
    transaction_start_time_ms: int64 = 0
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Message):
    throttle_time_ms: int32 = 0
    transaction_states: list[TransactionState] = []
