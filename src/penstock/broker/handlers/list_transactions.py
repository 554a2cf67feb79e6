"""ListTransactions (key 66, v0-v2): transactional ids by state, producer, age and name.

Refused: a pattern of names that is no regular expression.
"""

import re

from penstock.broker.context import Context
from penstock.coordinator.transaction.state import State
from penstock.coordinator.transaction.transaction import Transaction
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)


class InvalidPattern(KafkaError):
    """No regular expression."""

    code = ErrorCode.INVALID_REGULAR_EXPRESSION


def list_transactions(request: ListTransactionsRequest, ctx: Context) -> ListTransactionsResponse:
    known_states = {state.value for state in State}
    states = set(request.state_filters)
    producers = set(request.producer_id_filters)
    try:
        pattern = re.compile(request.transactional_id_pattern or "")
    except re.error as error:
        raise InvalidPattern(str(error)) from error

    def wanted(name: str, transaction: Transaction) -> bool:
        running_ms = ctx.now_ms - transaction.start_ms
        return (
            (not states or transaction.state.value in states)
            and (not producers or transaction.producer_id in producers)
            and (request.duration_filter < 0 or running_ms > request.duration_filter)
            and (not request.transactional_id_pattern or pattern.fullmatch(name) is not None)
        )

    return ListTransactionsResponse(
        unknown_state_filters=sorted(states - known_states),
        transaction_states=[
            TransactionState(
                transactional_id=name,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.value,
            )
            for shard in ctx.services.transactions.shards()
            for name, transaction in shard.transactions.items()
            if wanted(name, transaction)
        ],
    )
