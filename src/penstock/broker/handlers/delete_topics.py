"""DeleteTopics (key 20, v1-v6): delete topics by name or, from v6 on, by id.

Refused: a topic that is named twice, by name or id; a name together with an id, or neither.
"""

from collections import Counter
from typing import NamedTuple

from penstock.broker.context import Context
from penstock.controller.topic_rules import TopicDeletionDisabled
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.metadata.image import ClusterImage, Topic
from penstock.replication.errors import UnknownTopicId
from penstock.types import NO_UUID, Uuid
from penstock.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


class TopicToDelete(NamedTuple):
    """A topic as a request names it."""

    name: str | None
    topic_id: Uuid = NO_UUID


async def delete_topics(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    image = ctx.services.cluster.image
    by_name = map(TopicToDelete, request.topic_names)
    requested = Counter(
        (*by_name, *(TopicToDelete(each.name, each.topic_id) for each in request.topics))
    )
    ids = {topic_id for name, topic_id in requested if name is None}
    # A topic named by both name and id is refused once: under its name, with its id.
    both = {
        name
        for topic_id in ids
        if TopicToDelete(name := image.topic_names.get(topic_id)) in requested
    }
    results, names = [], []
    for each, count in requested.items():
        try:
            name = known_name(each, count, image)
        except KafkaError as error:
            results.append(refused(each, error, ctx))
            continue
        if name not in both:
            names.append(name)
        elif each.name is not None:
            twice = InvalidRequest(
                "The provided topic name maps to an ID that was already supplied."
            )
            results.append(refused(TopicToDelete(name, image.topics[name].id), twice, ctx))
    try:
        outcomes = await ctx.services.control.controller.delete_topics(names)
    except TopicDeletionDisabled as error:
        outcomes = dict.fromkeys(names, error)
    for name, outcome in outcomes.items():
        if isinstance(outcome, Topic):
            results.append(DeletableTopicResult(name=name, topic_id=outcome.id))
        else:
            results.append(refused(TopicToDelete(name), outcome, ctx))
    return DeleteTopicsResponse(responses=results)


def known_name(requested: TopicToDelete, count: int, image: ClusterImage) -> str:
    """The topic's name; the controller checks that the topic exists."""
    name, topic_id = requested
    if name is None and topic_id == NO_UUID:
        raise InvalidRequest("Neither topic name nor id were specified.")
    if name is not None and topic_id != NO_UUID:
        raise InvalidRequest("You may not specify both topic name and topic id.")
    if count > 1:
        raise InvalidRequest(f"Duplicate topic {'id' if name is None else 'name'}.")
    if name is not None:
        return name
    topic = image.topic_by_id(topic_id)
    if topic is None:
        raise UnknownTopicId("This server does not host this topic ID.")
    return topic.name


def refused(requested: TopicToDelete, error: KafkaError, ctx: Context) -> DeletableTopicResult:
    # Clients before v3 do not know TOPIC_DELETION_DISABLED.
    unsaid = isinstance(error, TopicDeletionDisabled) and ctx.version < 3
    return DeletableTopicResult(
        name=requested.name,
        topic_id=requested.topic_id,
        error_code=ErrorCode.INVALID_REQUEST if unsaid else error.code,
        error_message=str(error),
    )
