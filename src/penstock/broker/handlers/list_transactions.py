"""ListTransactions (key 66, v0-v2): transactional ids by state, producer, age and name.

Refused: a pattern that is not a valid RE2 expression.
"""

from penstock.broker.context import Context
from penstock.coordinator.regex import matching
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.wire.messages.list_transactions import (
    TransactionState as ListedTransaction,
)


def list_transactions(request: ListTransactionsRequest, ctx: Context) -> ListTransactionsResponse:
    known_states = {state.value for state in TransactionState}
    states = set(request.state_filters)
    producers = set(request.producer_id_filters)
    pattern = request.transactional_id_pattern
    shards = ctx.services.coordination.transactions.shards()
    names = (name for shard in shards for name in shard.transactions)
    matched = matching(pattern, names) if pattern else None

    def wanted(name: str, transaction: TransactionMetadata) -> bool:
        running_ms = ctx.now_ms - transaction.start_ms
        return (
            (not states or transaction.state.value in states)
            and (not producers or transaction.producer_id in producers)
            and (request.duration_filter < 0 or running_ms > request.duration_filter)
            and (matched is None or name in matched)
        )

    return ListTransactionsResponse(
        unknown_state_filters=sorted(states - known_states),
        transaction_states=[
            ListedTransaction(
                transactional_id=name,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.value,
            )
            for shard in shards
            for name, transaction in shard.transactions.items()
            if wanted(name, transaction)
        ],
    )
