"""How topics come, grow and go. Each step is in the store before the next one begins, so that a
controller which starts in the middle finishes what another has begun.

A topic is there once `/brokers/topics/T` is; partitions without a `state` are then brought online.
A topic goes once it is marked in `/admin/delete_topics`; the mark is the last node that goes.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from penstock.controller.change import StoppedReplicas
from penstock.controller.office import Deletion, Office
from penstock.controller.partition_states import bring_online
from penstock.controller.topic_rules import TopicAlreadyExists, UnknownTopic
from penstock.controller.topics import PlannedTopic
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta, Partition, Topic
from penstock.metadata.records import ConfigOverrides, TopicAssignment, encode
from penstock.metadata.refusal import NodeExists, StoreError
from penstock.metadata.store import Create, Delete, Operation, Set
from penstock.types import BrokerId, LeaderEpoch, TopicPartition

logger = logging.getLogger(__name__)


async def create(
    office: Office,
    planned: Sequence[PlannedTopic],
    epochs: Mapping[TopicPartition, LeaderEpoch] | None = None,
) -> list[PlannedTopic | KafkaError]:
    """Write the topics, give their partitions leaders, and tell the brokers."""
    # Kafka writes settings and topic one after the other, and may have left the first alone.
    configs = {paths.topic_config(each.topic.name) for each in planned}
    kept = (await office.store.get_many(configs)).keys()
    answers = await office.term.write_each(_creation(each, kept) for each in planned)
    outcomes: list[PlannedTopic | KafkaError] = [
        each if not isinstance(answer, StoreError) else _refused(each.topic.name, answer)
        for each, answer in zip(planned, answers, strict=True)
    ]
    made = [each for each in outcomes if isinstance(each, PlannedTopic)]
    if made:
        changes = await bring_online(office, (each.topic for each in made), epochs)
        delta = ImageDelta(
            topics={each.topic.name: each.topic for each in made},
            partitions={change.where: change.state for change in changes},
            topic_configs={each.topic.name: each.configs for each in made},
        )
        await office.announce(
            delta, partitions=changes, topic_configs=[each.topic.name for each in made]
        )
    for each in made:
        partitions = len(each.topic.partitions)
        logger.info("created topic %s with %d partitions", each.topic.name, partitions)
    return outcomes


def _creation(planned: PlannedTopic, kept: Collection[str]) -> list[Operation]:
    name = planned.topic.name
    config = encode(ConfigOverrides(config=dict(planned.configs)))
    path = paths.topic_config(name)
    return [
        Set(path, config) if path in kept else Create(path, config),
        Create(paths.topic(name), encode(assignment_of(planned.topic))),
    ]


def _refused(name: str, error: StoreError) -> KafkaError:
    return TopicAlreadyExists(f"topic {name} exists") if isinstance(error, NodeExists) else error


async def grow(office: Office, name: str, partitions: Mapping[int, Partition]) -> Topic:
    """Add partitions to a topic."""
    before = office.image.topics[name]
    topic = Topic(name, before.id, {**before.partitions, **partitions})
    await office.term.write(Set(paths.topic(name), encode(assignment_of(topic))))
    changes = await bring_online(office, [topic])
    delta = ImageDelta(
        topics={name: topic}, partitions={change.where: change.state for change in changes}
    )
    await office.announce(delta, partitions=changes)
    return office.image.topics[name]


async def delete(office: Office, names: Sequence[str]) -> dict[str, Topic | KafkaError]:
    """Mark the topics, stop their replicas, then let their nodes go."""
    known = [name for name in names if name in office.image.topics]
    marks = [[Create(paths.deleted_topic(name))] for name in known]
    answers = await office.term.write_each(marks)
    outcomes: dict[str, Topic | KafkaError] = {
        name: office.image.topics[name]
        if not isinstance(answer, StoreError) or isinstance(answer, NodeExists)
        else answer
        for name, answer in zip(known, answers, strict=True)
    }
    topics = [each for each in outcomes.values() if isinstance(each, Topic)]
    deleting = office.image.deleting | {each.name for each in topics}
    await finish_deletions(office, topics, deleting)
    for topic in topics:
        logger.info("deleted topic %s", topic.name)
    return {
        name: outcomes.get(name) or UnknownTopic("This server does not host this topic-partition.")
        for name in names
    }


async def finish_deletions(
    office: Office, topics: Sequence[Topic], deleting: frozenset[str]
) -> None:
    """Take marked topics out of the image and stop their replicas; their nodes go last.

    While a replica's broker is down the nodes stay: its log could not be told from a topic made
    anew under the same name.
    """
    office.deletions |= {topic.name: Deletion(topic, _replicas(topic)) for topic in topics}
    gone = {topic.name: None for topic in topics}
    failed = await office.announce(
        ImageDelta(topics=gone, topic_configs=gone, deleting=deleting),
        stopped=[each for topic in topics for each in _stopped(topic, _replicas(topic))],
    )
    # This broker has done it by now, but for logs on a disk that has failed: these wait for its
    # next start. Others say so one by one.
    own = [
        where
        for topic in topics
        for broker, where in _replicas(topic)
        if broker == office.broker and where not in failed
    ]
    await replicas_deleted(office, office.broker, own)


def unfinished(office: Office, brokers: Collection[BrokerId]) -> list[StoppedReplicas]:
    """What brokers that have come back must delete still."""
    return [
        each
        for deletion in office.deletions.values()
        for each in _stopped(deletion.topic, {r for r in deletion.awaited if r[0] in brokers})
    ]


async def replicas_deleted(
    office: Office, broker: BrokerId, partitions: Iterable[TopicPartition]
) -> None:
    """A broker has deleted its logs of these; topics without any are let go.

    Nodes that cannot be removed are tried again the next time, and keep no other topic.
    """
    for where in partitions:
        deletion = office.deletions.get(where.topic)
        if deletion is not None:
            deletion.awaited.discard((broker, where))
    await _let_go(
        office, [name for name, deletion in office.deletions.items() if not deletion.awaited]
    )


async def _let_go(office: Office, names: Iterable[str]) -> None:
    done = [name for name in names if await _remove_nodes(office, name)]
    for name in done:
        office.deletions.pop(name, None)
    if done:
        await office.announce(
            ImageDelta(
                deleting=office.image.deleting - set(done),
                # They may have been read again while the topic's nodes were still there.
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
    for broker, where in sorted(replicas):
        brokers.setdefault(where, []).append(broker)
    for where, on in brokers.items():
        yield StoppedReplicas(where, topic.id, tuple(on))


async def _remove_nodes(office: Office, name: str) -> bool:
    """From the leaves up; whatever a deletion that was broken off has removed is passed over."""
    parent = paths.partitions(name)
    indexes = (await office.store.children_many([parent])).get(parent, [])
    below = [f"{parent}/{index}" for index in indexes]
    states = await office.store.get_many(f"{path}/state" for path in below)
    last = (parent, paths.topic(name), paths.topic_config(name), paths.deleted_topic(name))
    there = await office.store.get_many(last)
    answers = await office.term.write_each(
        [
            *([Delete(f"{path}/state")] if f"{path}/state" in states else []),
            Delete(path),
        ]
        for path in below
    )
    answers += await office.term.write_each([[Delete(path) for path in last if path in there]])
    refused = [each for each in answers if isinstance(each, StoreError)]
    if refused:
        logger.error("topic %s is deleted, but its nodes stay: %s", name, refused[0])
    return not refused


async def resume_deletions(office: Office) -> None:
    """Go on with deletions that the last controller, or a tool, has begun.

    Where deletion is disabled the marks are taken away, as Kafka does, and the topics stay.
    """
    image = office.image
    if image.deleting and not office.may_delete_topics:
        logger.warning(
            "delete.topic.enable is false: %s stay, though marked",
            ", ".join(sorted(image.deleting)),
        )
        await office.term.write_each([Delete(paths.deleted_topic(each))] for each in image.deleting)
        office.image = image.apply(ImageDelta(deleting=frozenset()))
        return
    marked = [image.topics[name] for name in sorted(image.deleting) if name in image.topics]
    unknown = image.deleting - {topic.name for topic in marked} - office.deletions.keys()
    if marked:
        await finish_deletions(office, marked, image.deleting)
    # Marked by a tool, or the topic's own node went first.
    await _let_go(office, sorted(unknown))


def assignment_of(topic: Topic) -> TopicAssignment:
    """The record that says who replicates what."""
    parts = topic.partitions
    assignment = TopicAssignment.of(
        topic.id, {index: parts[index].replicas for index in sorted(parts)}
    )
    return msgspec.structs.replace(
        assignment,
        adding_replicas={i: p.adding_replicas for i, p in parts.items() if p.adding_replicas},
        removing_replicas={i: p.removing_replicas for i, p in parts.items() if p.removing_replicas},
    )
