"""ListTransactions (key 66, v0-v2): transactional ids by state, producer, age and name.

Refused: a pattern that is not a valid RE2 expression.
"""

from collections.abc import Coroutine, Generator
from typing import Any

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, in_turns
from penstock.config.regex import matching
from penstock.coordinator.transaction.state import TransactionState
from penstock.coordinator.transaction.transaction_metadata import TransactionMetadata
from penstock.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.wire.messages.list_transactions import (
    TransactionState as ListedTransaction,
)


def list_transactions(
    request: ListTransactionsRequest, ctx: Context
) -> ListTransactionsResponse | Coroutine[Any, Any, ListTransactionsResponse]:
    return in_turns(answered(request, ctx))


def answered(
    request: ListTransactionsRequest, ctx: Context
) -> Generator[None, None, ListTransactionsResponse]:
    known_states = {state.value for state in TransactionState}
    states: dict[str, None] = {}
    for count, state in enumerate(request.state_filters, 1):
        states[state] = None
        if count % KEYS_A_TURN == 0:
            yield
    unknown = []
    for count, state in enumerate(states, 1):
        if state not in known_states:
            unknown.append(state)
        if count % KEYS_A_TURN == 0:
            yield
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
        unknown_state_filters=unknown,
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
