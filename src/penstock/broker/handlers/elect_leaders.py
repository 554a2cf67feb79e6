"""ElectLeaders (key 43, v0-v2): elect preferred leaders, or unclean ones if there is none
(KIP-460).

Without partitions, all of them are meant; the response then lists only those that got a new leader,
or could not get one. Refused: unknown election types.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN, PARTITIONS_A_TURN
from penstock.controller.controller import Controller
from penstock.controller.leader_election import ElectionNotNeeded
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import with_turns
from penstock.metadata.image import Topic
from penstock.types import TopicPartition
from penstock.wire.enums import ElectionType
from penstock.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

KINDS = frozenset(ElectionType)


async def elect_leaders(request: ElectLeadersRequest, ctx: Context) -> ElectLeadersResponse:
    code = ErrorCode.NONE
    found: dict[str, list[PartitionResult]] = {}
    async for topic in with_turns(request.topic_partitions or (), KEYS_A_TURN):
        found[topic.topic] = []
    if request.election_type not in KINDS:
        text = f"Unknown election type {request.election_type}"
        code = ErrorCode.INVALID_REQUEST
        async for name, index in with_turns(named(request), PARTITIONS_A_TURN):
            found[name].append(result(index, code, text))
    else:
        kind = ElectionType(request.election_type)
        everything = request.topic_partitions is None
        topics = list(ctx.services.cluster.image.topics.values()) if everything else []
        for known in topics:
            found[known.name] = []
        wanted = partitions_of(topics) if everything else named(request)
        once = list({each: None async for each in with_turns(wanted, KEYS_A_TURN)})
        controller = ctx.services.control.controller
        outcomes = {each: outcome async for each, outcome in elected(kind, once, controller)}
        # A partition named twice is answered twice, as in Kafka.
        asked = iter(once) if everything else named(request)
        async for each in with_turns(asked, PARTITIONS_A_TURN):
            outcome = outcomes[each]
            if not (everything and isinstance(outcome, ElectionNotNeeded)):
                found[each.topic].append(result_of(each.partition, outcome))
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(topic=name, partition_result=results)
            async for name, results in with_turns(found.items(), KEYS_A_TURN)
        ],
    )


async def elected(
    kind: ElectionType, wanted: Sequence[TopicPartition], controller: Controller
) -> AsyncIterator[tuple[TopicPartition, KafkaError | None]]:
    """The outcome for each partition, elected in pieces.

    Elections of earlier pieces have taken place and are reported. If a later piece fails, for
    example because the controller has moved, its partitions and all following ones get that error.
    """
    lost: KafkaError | None = None
    for start in range(0, len(wanted), PARTITIONS_A_TURN):
        some = wanted[start : start + PARTITIONS_A_TURN]
        outcomes: Mapping[TopicPartition, KafkaError | None] = dict.fromkeys(some, lost)
        if lost is None:
            try:
                outcomes = await controller.elect_leaders(kind, some)
            except KafkaError as error:
                if start == 0:
                    raise  # nothing has happened yet: the request is refused as a whole
                outcomes = dict.fromkeys(some, lost := error)
        else:
            await asyncio.sleep(0)
        for each in outcomes.items():
            yield each


def named(request: ElectLeadersRequest) -> Iterator[TopicPartition]:
    """The named partitions; a topic may be named more than once."""
    for topic in request.topic_partitions or ():
        for index in topic.partitions:
            yield TopicPartition(topic.topic, index)


def partitions_of(topics: Iterable[Topic]) -> Iterator[TopicPartition]:
    for topic in topics:
        for index in sorted(topic.partitions):
            yield TopicPartition(topic.name, index)


def result_of(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return result(index, ErrorCode.NONE, None)
    return result(index, error.code, str(error))


def result(index: int, code: ErrorCode, text: str | None) -> PartitionResult:
    return PartitionResult(partition_id=index, error_code=code, error_message=text)
