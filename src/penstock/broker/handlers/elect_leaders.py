"""ElectLeaders (key 43, v0-v2): preferred leaders, or unclean ones where there is none (KIP-460).

Without partitions, all of them; the response then lists only those that got a new leader, or could
not get one. Refused: unknown election types.
"""

from penstock.broker.context import Context
from penstock.controller.leader_election import ElectionNotNeeded
from penstock.controller.requested_elections import ElectionType
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicPartition
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

KINDS = frozenset(ElectionType)


async def elect_leaders(request: ElectLeadersRequest, ctx: Context) -> ElectLeadersResponse:
    requested = {topic.topic: topic.partitions for topic in request.topic_partitions or ()}
    if request.election_type not in KINDS:
        text = f"Unknown election type {request.election_type}"
        code = ErrorCode.INVALID_REQUEST
        return ElectLeadersResponse(
            error_code=code,
            replica_election_results=[
                ReplicaElectionResult(
                    topic=topic,
                    partition_result=[result(index, code, text) for index in indexes],
                )
                for topic, indexes in requested.items()
            ],
        )
    everything = request.topic_partitions is None
    if everything:
        image = ctx.services.cluster.image
        requested = {name: sorted(topic.partitions) for name, topic in image.topics.items()}
    answers = await ctx.services.control.controller.elect_leaders(
        ElectionType(request.election_type),
        [TopicPartition(topic, index) for topic, indexes in requested.items() for index in indexes],
    )
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic,
                partition_result=[
                    result_of(index, answers[TopicPartition(topic, index)])
                    for index in indexes
                    if not everything
                    or not isinstance(answers[TopicPartition(topic, index)], ElectionNotNeeded)
                ],
            )
            for topic, indexes in requested.items()
        ]
    )


def result_of(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return result(index, ErrorCode.NONE, None)
    return result(index, error.code, str(error))


def result(index: int, code: ErrorCode, text: str | None) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=code, error_message=text)
