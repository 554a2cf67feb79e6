"""What a controller is told by the store: others have put something where it looks."""

from penstock.controller import broker_life, topic_life
from penstock.controller.office import Office
from penstock.controller.repair import Unclean, repair
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta
from penstock.metadata.reader import read_brokers, read_configs, read_topics
from penstock.metadata.records import LogDirEvent, decode
from penstock.metadata.store import Delete

WATCHED = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.LOG_DIR_EVENT_NOTIFICATION,
)
"""Whose children come from brokers and tools, not from the controller alone."""


async def look(office: Office, path: str, unclean: Unclean) -> None:
    """Read what is there now, and do what follows from it."""
    if path == paths.BROKER_IDS:
        await broker_life.brokers_changed(office, await read_brokers(office.store), unclean)
    elif path == paths.TOPICS:
        await _new_topics(office, unclean)
    elif path == paths.DELETE_TOPICS:
        await _new_deletions(office)
    elif path == paths.LOG_DIR_EVENT_NOTIFICATION:
        await _failed_directories(office)


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
    brokers = {decode(LogDirEvent, node).broker for node in events.values()}
    if brokers & office.image.brokers.keys():
        await office.announce(ImageDelta(), joined=brokers)
    await office.term.write_each([Delete(path)] for path in events)
