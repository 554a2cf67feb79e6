"""Changes that brokers and tools make to nodes that the controller watches."""

import logging
from collections.abc import Iterable

from penstock.controller import broker_changes, reassignment, requested_elections, topic_life
from penstock.controller.context import ControllerContext
from penstock.controller.operations import EXPECTED_FAILURES
from penstock.controller.repair import AllowsUnclean, repair
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta
from penstock.metadata.reader import read_brokers, read_configs, read_topics
from penstock.metadata.records import (
    LogDirEvent,
    PartitionNames,
    PartitionReassignments,
    decode_or_skip,
)
from penstock.metadata.store import Delete, Node
from penstock.types import TopicPartition
from penstock.wire.enums import ElectionType

logger = logging.getLogger(__name__)

WATCHED_CHILDREN = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.LOG_DIR_EVENT_NOTIFICATION,
)
"""Nodes under which brokers and tools create children."""

TOOL_REQUESTS = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)
"""Nodes in which Kafka's older tools leave their requests, one list at a time."""


async def process(context: ControllerContext, path: str, allows_unclean: AllowsUnclean) -> None:
    """Read what the node holds now, and act on it."""
    if path == paths.BROKER_IDS:
        await broker_changes.brokers_changed(
            context, await read_brokers(context.store), allows_unclean
        )
        # A reassignment may have waited for a broker that is back.
        await progress_reassignments(context, reassignment.in_progress(context.image))
    elif path == paths.TOPICS:
        await _new_topics(context, allows_unclean)
    elif path == paths.DELETE_TOPICS:
        await _new_deletions(context)
    elif path == paths.LOG_DIR_EVENT_NOTIFICATION:
        await _offline_dirs(context)
    elif path == paths.REASSIGN_PARTITIONS:
        await _requested_reassignments(context)
    elif path == paths.PREFERRED_REPLICA_ELECTION:
        await _preferred_elections(context)


async def _requested_reassignments(context: ControllerContext) -> None:
    """Begin the reassignments that a tool requests. The node is deleted when all are complete."""
    node = await _read(context, paths.REASSIGN_PARTITIONS)
    if node is None:
        return
    requested = decode_or_skip(PartitionReassignments, node)
    for each in () if requested is None else requested.partitions:
        topic_partition = TopicPartition(each.topic, each.partition)
        try:
            await reassignment.reassign(context, topic_partition, each.replicas)
        except EXPECTED_FAILURES:
            raise  # not refused: the next controller reads the request again
        except KafkaError as error:
            logger.warning(
                "the reassignment of %s to brokers %s is refused: %s",
                topic_partition,
                list(each.replicas),
                error,
            )
    if requested is not None:
        context.begun_request_zxid = node.modified_zxid
        await finish_request(context)


async def progress_reassignments(
    context: ControllerContext, partitions: Iterable[TopicPartition]
) -> None:
    """Complete the reassignments of these partitions whose new replicas are in sync."""
    if await reassignment.progress(context, partitions):
        await finish_request(context)


async def finish_request(context: ControllerContext) -> None:
    """Delete a tool's request once nothing of it is in progress. One that has just been written,
    and was not begun, stays: the tool would take it for complete.
    """
    if context.begun_request_zxid is None or reassignment.in_progress(context.image):
        return
    node = await _read(context, paths.REASSIGN_PARTITIONS)
    if node is not None and node.modified_zxid == context.begun_request_zxid:
        await context.epoch.write(Delete(node.path, node.version))
    context.begun_request_zxid = None


async def _preferred_elections(context: ControllerContext) -> None:
    node = await _read(context, paths.PREFERRED_REPLICA_ELECTION)
    requested = None if node is None else decode_or_skip(PartitionNames, node)
    if requested is not None:
        await requested_elections.elect(context, ElectionType.PREFERRED, requested.named())
        await _delete(context, paths.PREFERRED_REPLICA_ELECTION)


async def _read(context: ControllerContext, path: str) -> Node | None:
    return (await context.store.get_many([path])).get(path)


async def _delete(context: ControllerContext, path: str) -> None:
    node = await _read(context, path)
    if node is not None:
        await context.epoch.write(Delete(path, node.version))


async def _new_topics(context: ControllerContext, allows_unclean: AllowsUnclean) -> None:
    """Add topics that a tool wrote into the store itself."""
    known = context.image.topics.keys() | context.image.deleting
    names = [name for name in await context.store.children(paths.TOPICS) if name not in known]
    if names:
        found = await read_topics(context.store, names, context.image.brokers)
        topics = await topic_life.with_ids(context, found.values())
        configs = await read_configs(context.store, paths.CONFIG_TOPICS)
        given = {name: configs[name] for name in topics if name in configs}
        await context.announce(
            ImageDelta(topics=topics, topic_configs=given), topic_configs=list(given)
        )
        await repair(context, allows_unclean)


async def _new_deletions(context: ControllerContext) -> None:
    names = frozenset(await context.store.children(paths.DELETE_TOPICS))
    if not names <= context.image.deleting:
        context.image = context.image.apply(ImageDelta(deleting=names | context.image.deleting))
    await topic_life.resume_deletions(context)
    await finish_request(context)


async def _offline_dirs(context: ControllerContext) -> None:
    """The notification names a broker, not its failed replicas. So the controller sends the broker
    all its partitions again, and the response reports the failed ones (`replicas_failed`).
    """
    parent = paths.LOG_DIR_EVENT_NOTIFICATION
    names = await context.store.children(parent)
    events = await context.store.get_many(f"{parent}/{name}" for name in names)
    decoded = [decode_or_skip(LogDirEvent, node) for node in events.values()]
    brokers = {each.broker for each in decoded if each is not None}
    if brokers & context.image.brokers.keys():
        await context.announce(ImageDelta(), joined=brokers)
    await context.epoch.write_each([Delete(path)] for path in events)
