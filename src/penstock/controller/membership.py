"""How a broker joins: the tree's upper nodes, the cluster's id, its own number and registration."""

import asyncio
import logging
from contextlib import suppress

from penstock.errors import ConfigError
from penstock.metadata import paths
from penstock.metadata.records import ClusterId, decode, encode
from penstock.metadata.refusal import NodeExists, StoreUnavailable
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, MetadataStore, Node, Set
from penstock.types import BrokerId, Uuid, uuid_text

logger = logging.getLogger(__name__)


class InconsistentClusterId(ConfigError):
    """The log directories belong to another cluster."""


class BrokerIdInUse(ConfigError):
    """A live broker is registered under this number."""


async def prepare_tree(store: MetadataStore) -> None:
    """Make the nodes that everything else is under, as far as they are missing."""
    wanted = dict.fromkeys(
        path for leaf in (*paths.PERSISTENT, paths.CLUSTER_ID) for path in paths.with_parents(leaf)
    )
    del wanted[paths.CLUSTER_ID]  # not before there is an id to put in
    there = await store.get_many(wanted)
    for path in wanted:
        if path not in there:
            with suppress(NodeExists):  # another broker starts as well
                await store.create(path)


async def cluster_id(store: MetadataStore, stated: str | None, fresh: Uuid) -> str:
    """The cluster's id: the one in the store, else the one that the log directories state, else
    a fresh one. Refused if store and directories differ.
    """
    with suppress(NodeExists):
        record = ClusterId(id=stated or uuid_text(fresh))
        await store.create(paths.CLUSTER_ID, encode(record))
    found = decode(ClusterId, await store.get(paths.CLUSTER_ID)).id
    if stated not in {None, found}:
        raise InconsistentClusterId(
            f"the log directories are of cluster {stated}, the metadata store of cluster {found}"
        )
    return found


async def new_broker_id(store: MetadataStore, reserved_max: int) -> BrokerId:
    """A number that no broker has had, above those that are kept for people to choose."""
    node = await store.set(paths.BROKER_SEQID, None)
    return BrokerId(reserved_max + node.version)


async def register(
    store: MetadataStore,
    broker: BrokerId,
    registration: BrokerRegistration,
    *,
    patience_s: float = 0,
) -> int:
    """Say that this broker lives, for as long as the session does; its epoch comes back.

    A registration by this very session is ours: the connection went before we heard of it. One
    by another session with our addresses is of a process that has died, since we listen there;
    it goes with its session, for which we have `patience_s`.
    """
    path = paths.broker(broker)
    record = encode(registration)
    while True:
        with suppress(NodeExists):
            _, node = await store.multi((Create(path, ephemeral=True), Set(path, record)))
            assert isinstance(node, Node)
            return node.created_zxid
        found = (await store.get_many((path,))).get(path)
        if found is None:
            continue  # it has just gone
        if found.ephemeral_owner == store.session_id:
            return (await store.set(path, record)).created_zxid
        _check_former_life(broker, found, registration)
        logger.info("broker %s: waiting for the session of its former process to end", broker)
        if not await _gone(store, path, patience_s):
            raise BrokerIdInUse(
                f"broker.id: broker {broker} is registered already, at the addresses of this"
                f" broker; after {patience_s:g} s the session of its former process has not ended"
            )


def _check_former_life(broker: BrokerId, found: Node, registration: BrokerRegistration) -> None:
    theirs = decode(BrokerRegistration, found)
    if theirs.endpoints != registration.endpoints:
        where = ", ".join(theirs.endpoints) or f"{theirs.host}:{theirs.port}"
        raise BrokerIdInUse(
            f"broker.id: broker {broker} is registered already, at {where};"
            " stop that broker or give this one another broker.id"
        )


async def _gone(store: MetadataStore, path: str, patience_s: float) -> bool:
    """Whether the node goes in time. What happens while the store is away nobody tells: it is
    looked for again once the store is back.
    """
    changed = asyncio.Event()
    watch = await store.watch(lambda _: changed.set(), data=(path,))
    session = store.watch_session(lambda _: changed.set())
    try:
        async with asyncio.timeout(patience_s):
            while await _is_there(store, path):
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return False
    finally:
        watch.cancel()
        session.cancel()
    return True


async def _is_there(store: MetadataStore, path: str) -> bool:
    try:
        return await store.exists(path)
    except StoreUnavailable:
        return True  # as far as is known
