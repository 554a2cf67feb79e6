"""AddOffsetsToTxn (key 25, v0-v4): adds a group's offsets, which a producer is about to commit."""

from penstock.broker.context import Context
from penstock.broker.parked import Parked
from penstock.broker.translate.pending_replies import answered, code_for
from penstock.broker.translate.producers import WAIT_MS, code_for_version
from penstock.coordinator.group.coordinator import TOPIC as CONSUMER_OFFSETS
from penstock.coordinator.result import EmptyReply
from penstock.coordinator.storage import ProducerIdAndEpoch
from penstock.errors import KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)


def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, ctx: Context
) -> AddOffsetsToTxnResponse | Parked[AddOffsetsToTxnResponse]:
    services = ctx.services
    topic_partition = TopicPartition(
        CONSUMER_OFFSETS, services.coordination.groups.partition_of(request.group_id)
    )
    pending = services.coordination.transactions.add(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        frozenset({topic_partition}),
    )

    def respond(replies: list[EmptyReply | KafkaError]) -> AddOffsetsToTxnResponse:
        (reply,) = replies
        code = code_for(reply if isinstance(reply, KafkaError) else None)
        return AddOffsetsToTxnResponse(
            error_code=code_for_version(code, since=2, version=ctx.version)
        )

    return answered([pending], respond, ctx, WAIT_MS, services.coordination.transactions.runtime)
