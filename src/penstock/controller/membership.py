"""How a broker joins: the tree's upper nodes, the cluster's id, its own number and registration."""

from contextlib import suppress

from penstock.errors import ConfigError
from penstock.metadata import paths
from penstock.metadata.records import ClusterId, decode, encode
from penstock.metadata.refusal import NodeExists
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import Create, MetadataStore, Node, Set
from penstock.types import BrokerId, Uuid, uuid_text


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


async def register(store: MetadataStore, broker: BrokerId, registration: BrokerRegistration) -> int:
    """Say that this broker lives, for as long as the session does; its epoch comes back."""
    path = paths.broker(broker)
    try:
        _, node = await store.multi((Create(path, ephemeral=True), Set(path, encode(registration))))
    except NodeExists:
        raise BrokerIdInUse(f"broker {broker} is registered already") from None
    assert isinstance(node, Node)
    return node.created_zxid
