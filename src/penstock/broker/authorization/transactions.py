"""Guards of producers and their transactions."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTION,
    NotAuthorized,
    then,
)
from penstock.broker.authorization.items import answer_by_permission, each_item
from penstock.broker.authorization.refusals import Refusal, when_refused
from penstock.broker.authorization.whole import check_cluster
from penstock.broker.context import AnyHandler, Context
from penstock.errors import ErrorCode
from penstock.security.acl import AclOperation
from penstock.wire.messages import (
    add_partitions_to_txn as adding,
)
from penstock.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)

Op = AclOperation


def init_producer_id(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if request.transactional_id is not None:
        if not access.transaction(Op.WRITE, request.transactional_id):
            raise NotAuthorized(TRANSACTION)
    elif not access.cluster(Op.IDEMPOTENT_WRITE, logs=False) and not access.may_write_some_topic():
        raise NotAuthorized(CLUSTER)
    return handler(request, ctx)


def transaction(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    """The guard of EndTxn."""
    if not access.transaction(Op.WRITE, request.transactional_id):
        raise NotAuthorized(TRANSACTION)
    return handler(request, ctx)


def add_offsets(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if not access.transaction(Op.WRITE, request.transactional_id):
        raise NotAuthorized(TRANSACTION)
    if not access.group(Op.READ, request.group_id):
        raise NotAuthorized(GROUP)
    return handler(request, ctx)


def add_partitions(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if ctx.version >= 4:
        check_cluster(access, (Op.CLUSTER_ACTION,))  # brokers only
        return handler(request, ctx)
    topics = request.v3_and_below_topics
    if not access.transaction(Op.WRITE, request.v3_and_below_transactional_id):
        return _not_added(topics, lambda _: TRANSACTION)

    denied = set()

    def may(topic: Any) -> bool:
        allowed = access.topic(Op.WRITE, topic.name)
        if not allowed:
            denied.add(topic.name)
        return allowed

    def answered(_: list[Any], others: list[Any]) -> Any:
        if not others:
            return handler(request, ctx)
        return _not_added(
            topics, lambda name: TOPIC if name in denied else ErrorCode.OPERATION_NOT_ATTEMPTED
        )

    return answer_by_permission(topics, may, answered)


def _not_added(topics: Sequence[Any], code: Callable[[str], ErrorCode]) -> Any:
    refusal = Refusal(
        lambda topic, parts: adding.AddPartitionsToTxnTopicResult(topic.name, parts),
        attrgetter("partitions"),
        lambda topic, index: adding.AddPartitionsToTxnPartitionResult(index, code(topic.name)),
    )
    return when_refused(
        topics,
        refusal,
        lambda results: adding.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results),
    )


_describe_transactions = each_item(
    "transactional_ids",
    lambda access, name, _: access.transaction(Op.DESCRIBE, name),
    Refusal(lambda name, _: TransactionState(error_code=TRANSACTION, transactional_id=name)),
    "transaction_states",
    DescribeTransactionsResponse,
)


def describe_transactions(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def visible(found: Any) -> Any:
        states = [
            replace(
                each,
                topics=[e for e in each.topics if access.topic(Op.DESCRIBE, e.topic, logs=False)],
            )
            for each in found.transaction_states
        ]
        return replace(found, transaction_states=states)

    return then(_describe_transactions(request, ctx, handler, access), visible)


def list_transactions(request: Any, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    def visible(found: Any) -> Any:
        states = [
            each
            for each in found.transaction_states
            if access.transaction(Op.DESCRIBE, each.transactional_id, logs=False)
        ]
        return replace(found, transaction_states=states)

    return then(handler(request, ctx), visible)
