"""The guard of Produce, on the path of every record: compiled, see `pyproject.toml`."""

from typing import Any, Final

from msgspec.structs import replace

from penstock.broker.acls.access import Access
from penstock.broker.authorization.guard import REFUSALS, TOPIC, TRANSACTION, then
from penstock.broker.context import AnyHandler, Context
from penstock.errors import ErrorCode, ProtocolError
from penstock.security.acl import AclOperation
from penstock.types import NO_UUID
from penstock.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

WRITE: Final = AclOperation.WRITE  # a constant: an enum member costs a lookup by name

TRANSACTIONAL_AT: Final = 22
TRANSACTIONAL: Final = 0x10
"""The offset of the attributes byte in a batch, and its bit for transactional batches."""


def may_write(access: Access, topic: Any, ctx: Context) -> bool:
    """Whether the client may write. Unknown ids are refused here: the handler may wait, and the
    topic could exist by then.
    """
    if topic.topic_id == NO_UUID:
        return access.topic(WRITE, topic.name)
    name = ctx.services.cluster.image.topic_names.get(topic.topic_id)
    return name is not None and access.topic(WRITE, name)


def produce(request: ProduceRequest, ctx: Context, handler: AnyHandler, access: Access) -> Any:
    if request.transactional_id is not None or has_transactional_records(request):
        # The batches decide, not the request's field (CVE-2018-17196).
        name = request.transactional_id
        if name is None or not access.transaction(WRITE, name):
            return produce_refused(request, TRANSACTION)
    topics = request.topic_data
    verdicts = [may_write(access, each, ctx) for each in topics]
    if False not in verdicts:  # the hot path: nothing else is allocated
        return handler(request, ctx)
    allowed = [each for each, may in zip(topics, verdicts, strict=True) if may]
    denied = [each for each, may in zip(topics, verdicts, strict=True) if not may]
    if request.acks == 0:
        raise ProtocolError("acks=0 cannot be answered: not authorized")
    known = ctx.services.cluster.image.topic_names

    def code(topic: Any) -> ErrorCode:
        is_known = topic.topic_id == NO_UUID or topic.topic_id in known
        return TOPIC if is_known else ErrorCode.UNKNOWN_TOPIC_ID

    refused = [topic_not_produced(each, code(each)) for each in denied]
    reply = handler(replace(request, topic_data=allowed), ctx) if allowed else ProduceResponse()
    return then(reply, lambda found: replace(found, responses=[*found.responses, *refused]))


def has_transactional_records(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is not None and len(records) > TRANSACTIONAL_AT:
                view = memoryview(records)  # type: ignore[arg-type]
                if view[TRANSACTIONAL_AT] & TRANSACTIONAL:
                    return True
    return False


def produce_refused(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    if request.acks == 0:
        raise ProtocolError("acks=0 cannot be answered: not authorized")
    return ProduceResponse(
        responses=[topic_not_produced(each, code) for each in request.topic_data]
    )


def topic_not_produced(topic: Any, code: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(
                index=each.index, error_code=code, base_offset=-1, error_message=REFUSALS[code]
            )
            for each in topic.partition_data
        ],
    )
