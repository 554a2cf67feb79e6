"""Registration of a broker in the store: base nodes, cluster id, broker id, broker node."""

import asyncio
import logging
from collections.abc import Container
from contextlib import suppress

from penstock.errors import ConfigError
from penstock.metadata import paths
from penstock.metadata.errors import NodeExists, StoreUnavailable
from penstock.metadata.records import ClusterId, decode, encode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, MetadataStore, Node, Set
from penstock.types import BrokerId, Uuid, uuid_text

logger = logging.getLogger(__name__)


class InconsistentClusterId(ConfigError):
    """The log directories belong to another cluster."""


class BrokerIdInUse(ConfigError):
    """Another live broker is registered with this id."""


async def prepare_tree(store: MetadataStore) -> None:
    """Create the persistent base nodes that are missing."""
    wanted = dict.fromkeys(
        path for leaf in (*paths.PERSISTENT, paths.CLUSTER_ID) for path in paths.with_parents(leaf)
    )
    del wanted[paths.CLUSTER_ID]  # created later, with the id in it
    existing = await store.get_many(wanted)
    for path in wanted:
        if path not in existing:
            with suppress(NodeExists):  # another broker starts at the same time
                await store.create(path)


async def cluster_id(store: MetadataStore, stated: str | None, fresh: Uuid) -> str:
    """The cluster id: from the store, else from the log directories (`stated`), else `fresh`.

    Refused if the store and the log directories differ.
    """
    with suppress(NodeExists):
        record = ClusterId(id=stated or uuid_text(fresh))
        await store.create(paths.CLUSTER_ID, encode(record))
    found = decode(ClusterId, await store.get(paths.CLUSTER_ID)).id
    if stated not in {None, found}:
        raise InconsistentClusterId(
            f"the log directories belong to cluster {stated}, the metadata store to cluster {found}"
        )
    return found


async def new_broker_id(
    store: MetadataStore, reserved_max: int, taken: Container[object] = ()
) -> BrokerId:
    """An id that no broker has had, above those reserved for manual assignment.

    `taken` are ids that brokers got from a store that was lost.
    """
    while True:
        node = await store.set(paths.BROKER_SEQID, None)
        broker = BrokerId(reserved_max + node.version)
        if broker not in taken:
            return broker


async def register(
    store: MetadataStore,
    broker: BrokerId,
    registration: BrokerRegistration,
    *,
    patience_s: float = 0,
) -> int:
    """Register this broker for as long as its session lives; returns the broker epoch.

    A registration by this session is our own, and only its answer was lost with the connection. A
    registration by another session at our addresses belongs to a process that has died, because we
    listen there now. It ends with its session; we wait `patience_s` for that.
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
            continue  # it was deleted in between
        if found.ephemeral_owner == store.session_id:
            return (await store.set(path, record)).created_zxid
        _check_former_process(broker, found, registration)
        logger.info("broker %s: waiting until the session of its former process ends", broker)
        if not await _is_deleted_in_time(store, path, patience_s):
            raise BrokerIdInUse(
                f"broker.id: broker {broker} is registered already, at the addresses of this"
                f" broker; after {patience_s:g} s the session of its former process has not ended"
            )


def _check_former_process(broker: BrokerId, found: Node, registration: BrokerRegistration) -> None:
    theirs = decode(BrokerRegistration, found)
    if theirs.endpoints != registration.endpoints:
        addresses = ", ".join(theirs.endpoints) or f"{theirs.host}:{theirs.port}"
        raise BrokerIdInUse(
            f"broker.id: broker {broker} is registered already, at {addresses};"
            " stop that broker or give this one another broker.id"
        )


async def _is_deleted_in_time(store: MetadataStore, path: str, patience_s: float) -> bool:
    """Whether the node is deleted in time.

    The watch does not report changes made while the store is unavailable, so the node is checked
    again once the store is back.
    """
    changed = asyncio.Event()
    watch = await store.watch(lambda _: changed.set(), data=(path,))
    session = store.watch_session(lambda _: changed.set())
    try:
        async with asyncio.timeout(patience_s):
            while await _exists(store, path):
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return False
    finally:
        watch.cancel()
        session.cancel()
    return True


async def _exists(store: MetadataStore, path: str) -> bool:
    try:
        return await store.exists(path)
    except StoreUnavailable:
        return True  # nothing else is known
