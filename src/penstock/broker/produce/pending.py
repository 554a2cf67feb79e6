"""The response to appends that wait for acks, or whose partition another broker leads."""

import msgspec

from penstock.broker.context import Context
from penstock.broker.parked import Parked, client_wait_ms
from penstock.broker.produce.appending import PendingAppend
from penstock.errors import ErrorCode
from penstock.metadata.leaders import endpoints, leader_of
from penstock.wire.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)


def with_leaders(response: ProduceResponse, ctx: Context) -> ProduceResponse:
    """The response with the current leader beside each NOT_LEADER_OR_FOLLOWER (KIP-951)."""
    image, leaders, replace = ctx.services.cluster.image, set[int](), msgspec.structs.replace

    def with_leader(topic: str, answer: PartitionProduceResponse) -> PartitionProduceResponse:
        found = leader_of(image, topic, answer.index)
        if answer.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or found is None:
            return answer
        leaders.add(found[0])
        leader = LeaderIdAndEpoch(leader_id=found[0], leader_epoch=found[1])
        return replace(answer, current_leader=leader)

    topics = [
        replace(
            topic,
            partition_responses=[
                with_leader(topic.name or image.topic_names.get(topic.topic_id, ""), each)
                for each in topic.partition_responses
            ],
        )
        for topic in response.responses
    ]
    nodes = [
        NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
        for broker, host, port in endpoints(image, ctx.peer.listener, leaders)
    ]
    return replace(response, responses=topics, node_endpoints=nodes)


def outcome(append: PendingAppend, acks: int) -> ErrorCode | None:
    """The error code of the acknowledgement; None while it has to wait."""
    partition = append.partition
    if partition.log.log_dir.failure is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if acks == -1 and not partition.is_in_tenure(append.tenure):
        # The new leader may keep the append or truncate it.
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not append.is_done(acks):
        return None
    if acks == -1 and not partition.has_enough_replicas():
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return ErrorCode.NONE


def parked(
    request: ProduceRequest, response: ProduceResponse, pending: list[PendingAppend], ctx: Context
) -> Parked[ProduceResponse]:
    """Respond once every append is replicated and flushed as far as its acks require."""
    # Nothing else of the request: its buffer is reused while the response waits.
    acks = request.acks

    def attempt() -> ProduceResponse | None:
        waiting = any(outcome(each, acks) is None for each in pending)
        return None if waiting else finished()

    def finished() -> ProduceResponse:
        late = ErrorCode.REQUEST_TIMED_OUT
        outcomes = [(each, outcome(each, acks)) for each in pending]
        final = with_errors(
            response,
            {id(each.answer): late if code is None else code for each, code in outcomes},
        )
        led_elsewhere = any(code is ErrorCode.NOT_LEADER_OR_FOLLOWER for _, code in outcomes)
        return with_leaders(final, ctx) if led_elsewhere else final

    keys = [each.partition.topic_partition for each in pending]
    return Parked(keys, client_wait_ms(request.timeout_ms), attempt, finished, has_acted=True)


def with_errors(response: ProduceResponse, errors: dict[int, ErrorCode]) -> ProduceResponse:
    """The response with errors that arose after the append, by the identity of each answer."""
    replace = msgspec.structs.replace

    def with_error(answer: PartitionProduceResponse) -> PartitionProduceResponse:
        code = errors.get(id(answer), ErrorCode.NONE)
        return replace(answer, error_code=code, base_offset=-1) if code else answer

    return replace(
        response,
        responses=[
            replace(
                topic, partition_responses=[with_error(each) for each in topic.partition_responses]
            )
            for topic in response.responses
        ],
    )
