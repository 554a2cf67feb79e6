"""Creation, growth and deletion of topics.

Each step is in the store before the next begins, so that another controller can finish it. A topic
exists once `/brokers/topics/T` does; its partitions without a `state` are then brought online. A
topic is deleted once it is marked in `/admin/delete_topics`; the mark is the last node to go.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from penstock.controller.context import ControllerContext, TopicDeletion
from penstock.controller.partition_states import bring_online
from penstock.controller.state_change import StoppedReplicas
from penstock.controller.topic_rules import TopicAlreadyExists, UnknownTopic
from penstock.controller.topics import MorePartitions, PlannedTopic, grown, new_topic_id
from penstock.counted import counted
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import NodeExists, NotEmpty, StoreError
from penstock.metadata.image import ImageDelta, Topic
from penstock.metadata.records import ConfigOverrides, TopicAssignment, encode
from penstock.metadata.store import Answer, Create, Delete, Operation, Set
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition

logger = logging.getLogger(__name__)


async def create(
    context: ControllerContext,
    planned: Sequence[PlannedTopic],
    epochs: Mapping[TopicPartition, LeaderEpoch] | None = None,
) -> list[PlannedTopic | KafkaError]:
    """Write the topics, elect the leaders of their partitions, and tell the brokers."""
    # Kafka writes settings before the topic, and a crash may have left the settings alone.
    configs = {paths.topic_config(each.topic.name) for each in planned}
    existing = (await context.store.get_many(configs)).keys()
    answers = await context.epoch.write_each(_creation(each, existing) for each in planned)
    outcomes: list[PlannedTopic | KafkaError] = [
        each if not isinstance(answer, StoreError) else _refused(each.topic.name, answer)
        for each, answer in zip(planned, answers, strict=True)
    ]
    created = [each for each in outcomes if isinstance(each, PlannedTopic)]
    if created:
        changes = await bring_online(context, (each.topic for each in created), epochs)
        delta = ImageDelta(
            topics={each.topic.name: each.topic for each in created},
            partitions={change.topic_partition: change.state for change in changes},
            topic_configs={each.topic.name: each.configs for each in created},
        )
        await context.announce(
            delta, partitions=changes, topic_configs=[each.topic.name for each in created]
        )
    for each in created:
        partitions = counted(len(each.topic.partitions), "partition")
        logger.info("created topic %s with %s", each.topic.name, partitions)
    return outcomes


def _creation(planned: PlannedTopic, existing: Collection[str]) -> list[Operation]:
    name = planned.topic.name
    config = encode(ConfigOverrides(config=dict(planned.configs)))
    path = paths.topic_config(name)
    return [
        Set(path, config) if path in existing else Create(path, config),
        Create(paths.topic(name), encode(assignment_of(planned.topic))),
    ]


def _refused(name: str, error: StoreError) -> KafkaError:
    return TopicAlreadyExists(f"topic {name} exists") if isinstance(error, NodeExists) else error


async def with_ids(context: ControllerContext, topics: Iterable[Topic]) -> dict[str, Topic]:
    """The topics by name. Those that an older Kafka or a tool wrote without an id get one, as in
    Kafka: followers fetch by it, and leaders alter the ISR by it.
    """
    known = {topic.name: topic for topic in topics}
    named = [
        Topic(topic.name, new_topic_id(context.chance), topic.partitions)
        for topic in known.values()
        if topic.id == NO_UUID
    ]
    answers = await context.epoch.write_each(
        [Set(paths.topic(topic.name), encode(assignment_of(topic)))] for topic in named
    )
    written = {
        topic.name: topic
        for topic, answer in zip(named, answers, strict=True)
        if not isinstance(answer, StoreError)
    }
    return known | written


async def grow(
    context: ControllerContext, more: MorePartitions, *, validate_only: bool = False
) -> Topic:
    """Add partitions to a topic; returns the topic with them."""
    partitions = grown(more, context.image)
    name, before = more.name, context.image.topics[more.name]
    if validate_only:
        return before
    topic = Topic(name, before.id, {**before.partitions, **partitions})
    await context.epoch.write(Set(paths.topic(name), encode(assignment_of(topic))))
    changes = await bring_online(context, [topic])
    delta = ImageDelta(
        topics={name: topic},
        partitions={change.topic_partition: change.state for change in changes},
    )
    await context.announce(delta, partitions=changes)
    return context.image.topics[name]


async def delete(context: ControllerContext, names: Sequence[str]) -> dict[str, Topic | KafkaError]:
    """Mark the topics, stop their replicas, then remove their nodes."""
    known = [name for name in names if name in context.image.topics]
    marks = [[Create(paths.deleted_topic(name))] for name in known]
    answers = await context.epoch.write_each(marks)
    outcomes: dict[str, Topic | KafkaError] = {
        name: context.image.topics[name]
        if not isinstance(answer, StoreError) or isinstance(answer, NodeExists)
        else answer
        for name, answer in zip(known, answers, strict=True)
    }
    topics = [each for each in outcomes.values() if isinstance(each, Topic)]
    deleting = context.image.deleting | {each.name for each in topics}
    await finish_deletions(context, topics, deleting)
    for topic in topics:
        logger.info("deleted topic %s", topic.name)
    return {
        name: outcomes.get(name) or UnknownTopic("This server does not host this topic-partition.")
        for name in names
    }


async def finish_deletions(
    context: ControllerContext, topics: Sequence[Topic], deleting: frozenset[str]
) -> None:
    """Remove marked topics from the image and stop their replicas; their nodes go last.

    The nodes stay while the broker of a replica is down. Without them its log could not be
    distinguished from that of a new topic of the same name.
    """
    context.deletions |= {topic.name: TopicDeletion(topic, _replicas(topic)) for topic in topics}
    gone = {topic.name: None for topic in topics}
    failed = await context.announce(
        ImageDelta(topics=gone, topic_configs=gone, deleting=deleting),
        stopped=[each for topic in topics for each in _stopped(topic, _replicas(topic))],
    )
    await _own_deleted(context, {each for topic in topics for each in _replicas(topic)}, failed)


async def _own_deleted(
    context: ControllerContext,
    replicas: Iterable[tuple[BrokerId, TopicPartition]],
    failed: Collection[TopicPartition],
) -> None:
    """Note what this broker has deleted by now, and what failed. Others confirm one by one."""
    own = [topic_partition for broker, topic_partition in replicas if broker == context.broker]
    await replicas_undeleted(context, context.broker, [each for each in own if each in failed])
    await replicas_deleted(context, context.broker, [each for each in own if each not in failed])


def unfinished_deletions(
    context: ControllerContext, brokers: Collection[BrokerId]
) -> list[StoppedReplicas]:
    """Replicas of deleted topics that these brokers, which are back, still have to delete."""
    return [
        each
        for deletion in context.deletions.values()
        for each in _stopped(deletion.topic, {r for r in deletion.awaited if r[0] in brokers})
    ]


async def replicas_deleted(
    context: ControllerContext, broker: BrokerId, partitions: Iterable[TopicPartition]
) -> None:
    """A broker has deleted these logs. Removes the nodes of topics whose logs are all gone.

    A topic whose nodes cannot be removed is tried again later, and does not delay others.
    """
    for topic_partition in partitions:
        deletion = context.deletions.get(topic_partition.topic)
        if deletion is not None:
            deletion.awaited.discard((broker, topic_partition))
    await _remove_all_nodes(context, _without_logs(context))


async def replicas_undeleted(
    context: ControllerContext, broker: BrokerId, partitions: Iterable[TopicPartition]
) -> None:
    """A broker could not delete these logs, for example for lack of file descriptors."""
    context.undeleted |= {(broker, each) for each in partitions}


async def resend_deletions(context: ControllerContext) -> None:
    """Let brokers try again to delete logs of deleted topics. Those in a failed directory stay
    until the broker's next start.
    """
    failed, context.undeleted = context.undeleted, set()
    again = {
        each
        for deletion in context.deletions.values()
        for each in deletion.awaited & failed
        if each[0] in context.image.brokers
    }
    if again:
        stopped = [
            each
            for deletion in context.deletions.values()
            for each in _stopped(deletion.topic, deletion.awaited & again)
        ]
        await _own_deleted(context, again, await context.announce(ImageDelta(), stopped=stopped))


def _without_logs(context: ControllerContext) -> list[str]:
    return [name for name, deletion in context.deletions.items() if not deletion.awaited]


async def _remove_all_nodes(context: ControllerContext, names: Iterable[str]) -> None:
    done = [name for name in names if await _remove_nodes(context, name)]
    for name in done:
        context.deletions.pop(name, None)
    if done:
        await context.announce(
            ImageDelta(
                deleting=context.image.deleting - set(done),
                # The settings may have been read again while the nodes still existed.
                topic_configs=dict.fromkeys(done),
            )
        )


def _replicas(topic: Topic) -> set[tuple[BrokerId, TopicPartition]]:
    return {
        (broker, TopicPartition(topic.name, index))
        for index, partition in topic.partitions.items()
        for broker in partition.replicas
    }


def _stopped(
    topic: Topic, replicas: Iterable[tuple[BrokerId, TopicPartition]]
) -> Iterable[StoppedReplicas]:
    brokers: dict[TopicPartition, list[BrokerId]] = {}
    for broker, topic_partition in sorted(replicas):
        brokers.setdefault(topic_partition, []).append(broker)
    for topic_partition, on in brokers.items():
        yield StoppedReplicas(topic_partition, topic.id, tuple(on))


async def _remove_nodes(context: ControllerContext, name: str) -> bool:
    """Remove a topic's nodes from the leaves up; skips nodes that are removed already."""
    parent = paths.partitions(name)
    indexes = (await context.store.children_many([parent])).get(parent, [])
    partition_nodes = [f"{parent}/{index}" for index in indexes]
    states = await context.store.get_many(f"{path}/state" for path in partition_nodes)
    last = (parent, paths.topic(name), paths.topic_config(name), paths.deleted_topic(name))
    existing = await context.store.get_many(last)
    answers = await context.epoch.write_each(
        [
            *([Delete(f"{path}/state")] if f"{path}/state" in states else []),
            Delete(path),
        ]
        for path in partition_nodes
    )
    answers += await context.epoch.write_each([[Delete(path) for path in last if path in existing]])
    if any(isinstance(each, NotEmpty) for each in answers):
        answers = await _remove_subtrees(context, last[1:])
    refused = [each for each in answers if isinstance(each, StoreError)]
    if refused:
        logger.error(
            "topic %s is deleted, but its nodes could not be removed, trying again later: %s",
            name,
            refused[0],
        )
        context.repair_later()
    return not refused


async def _remove_subtrees(
    context: ControllerContext, roots: Sequence[str]
) -> list[list[Answer] | StoreError]:
    """Remove these nodes with all that is under them, as Kafka does: a node that a tool or an
    operator put there would keep the topic's name from being used again.
    """
    existing = await context.store.get_many(roots)
    below: list[str] = []
    level = [path for path in roots if path in existing]
    while level:
        children = await context.store.children_many(level)
        level = [f"{path}/{name}" for path, names in children.items() for name in names]
        below = level + below  # the deepest first
    logger.warning("removing all that is under %s", ", ".join(existing))
    answers = await context.epoch.write_each([Delete(path)] for path in below)
    # Together: the mark of the deletion stays as long as the topic's node.
    together = [Delete(path) for path in roots if path in existing]
    return answers + await context.epoch.write_each([together])


async def resume_deletions(context: ControllerContext) -> None:
    """Continue deletions that the last controller or a tool began, or whose nodes could not be
    removed.

    Where deletion is disabled, the marks are removed and the topics stay, as in Kafka.
    """
    image = context.image
    if image.deleting and not context.may_delete_topics:
        logger.warning(
            "delete.topic.enable is false: not deleting the marked topics %s",
            ", ".join(sorted(image.deleting)),
        )
        await context.epoch.write_each(
            [Delete(paths.deleted_topic(each))] for each in image.deleting
        )
        context.image = image.apply(ImageDelta(deleting=frozenset()))
        return
    marked = [image.topics[name] for name in sorted(image.deleting) if name in image.topics]
    unknown = image.deleting - {topic.name for topic in marked} - context.deletions.keys()
    if marked:
        await finish_deletions(context, marked, image.deleting)
    # A tool marked an unknown topic, or the topic's own node is gone already.
    await _remove_all_nodes(context, [*sorted(unknown), *_without_logs(context)])


def assignment_of(topic: Topic) -> TopicAssignment:
    """The record of the topic's replica assignment."""
    partitions = topic.partitions
    assignment = TopicAssignment.of(
        topic.id, {index: partitions[index].replicas for index in sorted(partitions)}
    )
    return msgspec.structs.replace(
        assignment,
        adding_replicas={i: p.adding_replicas for i, p in partitions.items() if p.adding_replicas},
        removing_replicas={
            i: p.removing_replicas for i, p in partitions.items() if p.removing_replicas
        },
    )
