"""Errors that members of streams groups get."""

from penstock.errors import ErrorCode, KafkaError


class InvalidTopology(KafkaError):
    """The topology contradicts itself."""

    code = ErrorCode.STREAMS_INVALID_TOPOLOGY


class RebalancesClassically(KafkaError):
    """The classic group cannot become a streams group before its rebalance has ended.

    Kafka Streams retries after this error code; the protocol has no more specific one.
    """

    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
