"""The interface that leaders and followers have to the rest of the broker."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

from penstock.broker.cluster import Cluster
from penstock.broker.replicas.throttles import FollowerThrottle
from penstock.broker.waiters import Waiters
from penstock.client.address import Address
from penstock.client.security import ClientSecurity
from penstock.clock import Clock
from penstock.config.listener import EVERY_INTERFACE, ListenerConfig
from penstock.log.flush import Flusher
from penstock.log.partition_log import PartitionLog
from penstock.replication.environment import Environment
from penstock.replication.fetcher import FetcherContext
from penstock.replication.fetchers import Fetchers, SetupTimeout
from penstock.replication.follower import FollowerLogs
from penstock.replication.isr_proposals import propose_shrink
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import IsrProposal
from penstock.types import BrokerId


def environment(
    cluster: Cluster,
    waiters: Waiters,
    flusher: Flusher,
    clock: Clock,
    propose: Callable[[IsrProposal], object],
) -> Environment:
    """The environment of leaders; `propose` sends ISR proposals to the controller."""

    def is_eligible(broker_id: int, broker_epoch: int) -> bool:
        broker = cluster.image.brokers.get(BrokerId(broker_id))
        return broker is not None and (
            broker_epoch < 0 or broker.epoch < 0 or broker_epoch == broker.epoch
        )

    def flush(log: PartitionLog) -> None:
        topic_partition = log.topic_partition
        flusher.request(log).add_done_callback(lambda _: waiters.changed(topic_partition))

    return Environment(
        monotonic_ms=clock.monotonic_ms,
        lag_time_max_ms=lambda: cluster.config.replication.replica_lag_time_max_ms,
        lag_max_messages=lambda: cluster.config.replication.replica_lag_max_messages,
        is_eligible=is_eligible,
        propose=propose,
        changed=waiters.changed,
        flush=flush,
    )


def fetchers(
    broker_id: BrokerId,
    cluster: Cluster,
    logs: FollowerLogs,
    broker_epoch: Callable[[], int],
    clock: Clock,
    flush: Callable[[PartitionLog], Future[int]],
    security: Callable[[], ClientSecurity],
) -> Fetchers:
    """The fetchers of this broker. They connect from the address of its listener."""
    listeners = cluster.config.listener
    between_brokers = listeners.inter_broker()

    def address_of(leader: int) -> Address | None:
        broker = cluster.image.brokers.get(BrokerId(leader))
        found = None if broker is None else broker.endpoint(between_brokers)
        return None if found is None else Address(found.host, found.port)

    follower = FetcherContext(
        broker_id,
        broker_epoch,
        lambda: cluster.config.replication,
        logs,
        clock,
        flush,
        FollowerThrottle(broker_id, cluster, clock.monotonic_ms),
    )
    network = cluster.config.network
    setup_timeout = SetupTimeout(
        network.socket_connection_setup_timeout_ms, network.socket_connection_setup_timeout_max_ms
    )
    return Fetchers(follower, address_of, source_of(listeners), setup_timeout, security)


def source_of(listeners: ListenerConfig) -> str | None:
    """The local address of connections to other brokers: that of this broker's own listener, so
    that a network fault at that address affects both directions. None: the system chooses.
    """
    between_brokers = listeners.inter_broker()
    hosts = [each.host for each in listeners.endpoints() if each.listener == between_brokers]
    return next((host for host in hosts if host not in EVERY_INTERFACE), None)


async def shrinking(partitions: Partitions, cluster: Cluster) -> None:
    """Remove slow followers from ISRs; checks twice per `replica.lag.time.max.ms`."""
    while True:
        await asyncio.sleep(cluster.config.replication.replica_lag_time_max_ms / 2000)
        for partition in list(partitions):
            propose_shrink(partition)
