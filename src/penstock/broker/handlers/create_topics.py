"""CreateTopics (key 19, v2-v7): create topics, each independently.

Refused: names that are illegal, taken, or twice in the request; unknown settings; invalid numbers
or assignments; more than 10,000 topics or partitions in all.
"""

from collections import Counter
from typing import Final

from penstock.broker.context import Context
from penstock.broker.handling.turns import KEYS_A_TURN
from penstock.broker.translate.capacity import check_room, replicas
from penstock.config.effective import topic_entries
from penstock.controller.topic_rules import MAX_NEW_PARTITIONS, PolicyViolation
from penstock.controller.topics import PlannedTopic, TopicSpec
from penstock.errors import ErrorCode, KafkaError
from penstock.loop import with_turns
from penstock.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TOPICS_A_TURN: Final = 50
"""Results per turn: several dozen settings are looked up for each topic."""


async def create_topics(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    named = Counter(topic.name for topic in request.topics)
    if len(named) > MAX_NEW_PARTITIONS:
        too_many = PolicyViolation(
            f"{len(named)} topics in one request, at most {MAX_NEW_PARTITIONS} new partitions"
        )
        refusals = [refused(each, too_many) async for each in with_turns(named, KEYS_A_TURN)]
        return CreateTopicsResponse(topics=refusals)
    news = [wanted(topic) for topic in request.topics if named[topic.name] == 1]
    try:
        check_room(sum(replicas(new, ctx.services.config) for new in news), ctx)
        outcomes = await ctx.services.control.controller.create_topics(
            news, validate_only=request.validate_only
        )
    except KafkaError as error:
        outcomes = [error] * len(news)
    results = [
        refused(new.name, outcome) if isinstance(outcome, KafkaError) else created(outcome, ctx)
        async for new, outcome in with_turns(zip(news, outcomes, strict=True), TOPICS_A_TURN)
    ]
    results += [
        CreatableTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
        for name, count in named.items()
        if count > 1
    ]
    return CreateTopicsResponse(topics=results)


def wanted(topic: CreatableTopic) -> TopicSpec:
    return TopicSpec(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
        {each.name: each.value for each in topic.configs},
    )


def refused(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error))


def created(made: PlannedTopic, ctx: Context) -> CreatableTopicResult:
    topic = made.topic
    entries = sorted(topic_entries(made.configs, ctx.services.cluster.layers))
    # Settings that were given keep their text.
    texts = {**{each.name: each.value for each in entries}, **made.configs}
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replicas),
        configs=[
            CreatableTopicConfigs(name=each.name, value=texts[each.name], config_source=each.source)
            for each in entries
        ],
    )
