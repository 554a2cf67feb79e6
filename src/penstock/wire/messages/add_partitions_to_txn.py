"""AddPartitionsToTxn (key 24); written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V, int16, int32, int64


class AddPartitionsToTxnTopic(Message):
    name: str = ""
    partitions: list[int32] = []


class AddPartitionsToTxnTransaction(Message):
    transactional_id: Annotated[str, V("4+")] = ""
    producer_id: Annotated[int64, V("4+")] = 0
    producer_epoch: Annotated[int16, V("4+")] = 0
    verify_only: Annotated[bool, V("4+")] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], V("4+")] = []


class AddPartitionsToTxnRequest(Message):
    transactions: Annotated[list[AddPartitionsToTxnTransaction], V("4+")] = []
    v3_and_below_transactional_id: Annotated[str, V("0-3")] = ""
    v3_and_below_producer_id: Annotated[int64, V("0-3")] = 0
    v3_and_below_producer_epoch: Annotated[int16, V("0-3")] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], V("0-3")] = []


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int32 = 0
    partition_error_code: int16 = 0


class AddPartitionsToTxnTopicResult(Message):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Message):
    transactional_id: Annotated[str, V("4+")] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], V("4+")] = []


class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("4+")] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], V("4+")] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], V("0-3")] = []
