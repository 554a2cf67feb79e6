"""Replication as this broker runs it: what leaders and followers need of the broker around them."""

import asyncio

from penstock.broker.cluster import Cluster
from penstock.broker.waiters import Waiters
from penstock.client.address import Address
from penstock.clock import Clock
from penstock.config.listener import ListenerConfig
from penstock.log.compaction.compactor import Compactor
from penstock.log.store import LogStore
from penstock.replication.environment import Environment
from penstock.replication.fetcher import Follower
from penstock.replication.fetchers import Fetchers
from penstock.replication.follower import FollowerLogs
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId

EVERY_INTERFACE = {"", "0.0.0.0", "::"}  # noqa: S104  recognised, not bound


def environment(cluster: Cluster, waiters: Waiters, clock: Clock) -> Environment:
    """What leaders ask of this broker; who sends their proposals comes with the cluster."""

    def is_eligible(broker_id: int, broker_epoch: int) -> bool:
        broker = cluster.image.brokers.get(BrokerId(broker_id))
        return broker is not None and (
            broker_epoch < 0 or broker.epoch < 0 or broker_epoch == broker.epoch
        )

    return Environment(
        monotonic_ms=clock.monotonic_ms,
        lag_time_max_ms=lambda: cluster.config.replication.replica_lag_time_max_ms,
        is_eligible=is_eligible,
        changed=waiters.changed,
    )


def fetchers(
    broker_id: BrokerId,
    cluster: Cluster,
    store: LogStore,
    compactor: Compactor,
    listeners: ListenerConfig,
    clock: Clock,
) -> Fetchers:
    """The fetchers of this broker; they connect from the address that it listens on."""
    between_brokers = listeners.inter_broker()

    def address_of(leader: int) -> Address | None:
        broker = cluster.image.brokers.get(BrokerId(leader))
        found = None if broker is None else broker.endpoint(between_brokers)
        return None if found is None else Address(found.host, found.port)

    def broker_epoch() -> int:
        broker = cluster.image.brokers.get(broker_id)
        return -1 if broker is None else broker.epoch

    hosts = [each.host for each in listeners.endpoints() if each.listener == between_brokers]
    source = next((host for host in hosts if host not in EVERY_INTERFACE), None)
    follower = Follower(
        broker_id,
        broker_epoch,
        lambda: cluster.config.replication,
        FollowerLogs(store, compactor.truncated),
        clock,
    )
    return Fetchers(follower, address_of, source)


async def shrinking(partitions: Partitions, cluster: Cluster) -> None:
    """Look for followers that are late, twice in the time that they may be."""
    while True:
        await asyncio.sleep(cluster.config.replication.replica_lag_time_max_ms / 2000)
        for partition in list(partitions):
            partition.shrink()
