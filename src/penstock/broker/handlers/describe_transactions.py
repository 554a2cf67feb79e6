"""DescribeTransactions (key 65, v0): the state of transactional ids, and their partitions."""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered
from penstock.broker.translate.producers import WAIT_MS
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.errors import KafkaError
from penstock.types import indexes_by_topic
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


def describe_transactions(
    request: DescribeTransactionsRequest, ctx: Context
) -> DescribeTransactionsResponse | Parked[DescribeTransactionsResponse]:
    transactions, names = ctx.services.coordination.transactions, request.transactional_ids
    pending_replies = [transactions.describe(name) for name in names]

    def respond(replies: list[TransactionMetadata | KafkaError]) -> DescribeTransactionsResponse:
        return DescribeTransactionsResponse(
            transaction_states=[
                TransactionState(transactional_id=name, error_code=reply.code)
                if isinstance(reply, KafkaError)
                else described(name, reply)
                for name, reply in zip(names, replies, strict=True)
            ]
        )

    return answered(pending_replies, respond, ctx, WAIT_MS, transactions.runtime)


def described(name: str, known: TransactionMetadata) -> TransactionState:
    by_topic = indexes_by_topic(sorted(known.partitions))
    return TransactionState(
        transactional_id=name,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[TopicData(topic, partitions) for topic, partitions in by_topic.items()],
    )
