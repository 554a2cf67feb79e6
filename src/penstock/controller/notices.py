"""What a controller is told by the store: others have put something where it looks."""

import logging

from penstock.controller import broker_life, elections, reassignment, topic_life
from penstock.controller.elections import ElectionType
from penstock.controller.office import Office
from penstock.controller.repair import Unclean, repair
from penstock.errors import KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta
from penstock.metadata.reader import read_brokers, read_configs, read_topics
from penstock.metadata.records import LogDirEvent, PartitionMoves, PartitionNames, decode_or_skip
from penstock.metadata.store import Delete, Node
from penstock.types import TopicPartition

logger = logging.getLogger(__name__)

WATCHED = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.LOG_DIR_EVENT_NOTIFICATION,
)
"""Whose children come from brokers and tools, not from the controller alone."""

ASKED = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)
"""Where old tools put what they want, one list at a time."""


async def look(office: Office, path: str, unclean: Unclean) -> None:
    """Read what is there now, and do what follows from it."""
    if path == paths.BROKER_IDS:
        await broker_life.brokers_changed(office, await read_brokers(office.store), unclean)
        # A move may have waited for a broker that is back.
        if await reassignment.progress(office, reassignment.moving(office)):
            await moves_done(office)
    elif path == paths.TOPICS:
        await _new_topics(office, unclean)
    elif path == paths.DELETE_TOPICS:
        await _new_deletions(office)
    elif path == paths.LOG_DIR_EVENT_NOTIFICATION:
        await _failed_directories(office)
    elif path == paths.REASSIGN_PARTITIONS:
        await _asked_moves(office)
    elif path == paths.PREFERRED_REPLICA_ELECTION:
        await _asked_elections(office)


async def _asked_moves(office: Office) -> None:
    """Begin the moves that a tool asks for. The node goes when all of them are done."""
    node = await _found(office, paths.REASSIGN_PARTITIONS)
    if node is None:
        return
    moves = decode_or_skip(PartitionMoves, node)
    for move in () if moves is None else moves.partitions:
        where = TopicPartition(move.topic, move.partition)
        try:
            await reassignment.reassign(office, where, move.replicas)
        except KafkaError as error:
            logger.warning("%s is not moved to %s: %s", where, list(move.replicas), error)
    if moves is not None:
        await moves_done(office)


async def moves_done(office: Office) -> None:
    """Take the tool's list away, if no partition moves any more."""
    if not reassignment.moving(office):
        await _taken(office, paths.REASSIGN_PARTITIONS)


async def _asked_elections(office: Office) -> None:
    node = await _found(office, paths.PREFERRED_REPLICA_ELECTION)
    wanted = None if node is None else decode_or_skip(PartitionNames, node)
    if wanted is not None:
        await elections.elect(office, ElectionType.PREFERRED, wanted.named())
        await _taken(office, paths.PREFERRED_REPLICA_ELECTION)


async def _found(office: Office, path: str) -> Node | None:
    return (await office.store.get_many([path])).get(path)


async def _taken(office: Office, path: str) -> None:
    node = await _found(office, path)
    if node is not None:
        await office.term.write(Delete(path, node.version))


async def _new_topics(office: Office, unclean: Unclean) -> None:
    """Topics that a tool wrote into the store by itself."""
    known = office.image.topics.keys() | office.image.deleting
    names = [name for name in await office.store.children(paths.TOPICS) if name not in known]
    if names:
        topics = await read_topics(office.store, names, office.image.brokers)
        configs = await read_configs(office.store, paths.CONFIG_TOPICS)
        given = {name: configs[name] for name in topics if name in configs}
        await office.announce(
            ImageDelta(topics=topics, topic_configs=given), topic_configs=list(given)
        )
        await repair(office, unclean)


async def _new_deletions(office: Office) -> None:
    names = frozenset(await office.store.children(paths.DELETE_TOPICS))
    if not names <= office.image.deleting:
        office.image = office.image.apply(ImageDelta(deleting=names | office.image.deleting))
        await topic_life.resume_deletions(office)


async def _failed_directories(office: Office) -> None:
    """Which replicas have failed is not in the notice: each broker named is asked of all of its
    own, by telling it again what they are. The answers come as `replicas_failed`.
    """
    parent = paths.LOG_DIR_EVENT_NOTIFICATION
    names = await office.store.children(parent)
    events = await office.store.get_many(f"{parent}/{name}" for name in names)
    told = [decode_or_skip(LogDirEvent, node) for node in events.values()]
    brokers = {each.broker for each in told if each is not None}
    if brokers & office.image.brokers.keys():
        await office.announce(ImageDelta(), joined=brokers)
    await office.term.write_each([Delete(path)] for path in events)
