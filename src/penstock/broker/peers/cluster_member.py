"""Membership of this broker in its cluster: registration, controller election, control requests.

A single broker is a cluster of one: the same parts run, without connections to other brokers.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from penstock.broker.cluster import Cluster
from penstock.broker.peers.cluster_brokers import ClusterBrokers
from penstock.broker.peers.config_watch import ConfigWatch
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.controller_link import ControllerLink
from penstock.broker.peers.controller_watch import ControllerWatch
from penstock.broker.peers.failed_directories import FailedDirectories
from penstock.broker.peers.feature_watch import FeatureWatch
from penstock.broker.peers.isr_proposals import IsrProposals
from penstock.broker.peers.lifecycle import BrokerLifecycle
from penstock.broker.peers.outbox import Outbox
from penstock.broker.peers.shutdown_request import request_controlled_shutdown
from penstock.broker.peers.supervision import supervised
from penstock.broker.peers.topic_watch import TopicWatch
from penstock.broker.replicas.environment import fetchers, shrinking
from penstock.broker.replicas.local import LocalBroker
from penstock.clock import Clock
from penstock.config.listener import Endpoint
from penstock.controller.controller import Controller
from penstock.controller.controller_election import ControllerElection
from penstock.log.partition_log import PartitionLog
from penstock.metadata import paths
from penstock.metadata.features import Features
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.metadata.reader import catch_up
from penstock.metadata.records import NO_LEADER, LogDirEvent, encode
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore, SessionState
from penstock.replication.fetchers import Fetchers
from penstock.replication.follower import FollowerLogs
from penstock.replication.isr_proposals import settle
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import IsrProposal, Settlement
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

OnBrokers = Callable[[Collection[BrokerId]], object]
"""Called with the live brokers at each change of the image."""

DELIVERY_S = 1.0
LOST_S = 1.0
ANNOUNCED_S = 10.0
ANNOUNCED_CHECK_S = 0.01


@asynccontextmanager
async def while_connected(store: MetadataStore) -> AsyncIterator[None]:
    """Raises `TimeoutError` soon after the connection to the store is lost: the controller then
    cannot decide, or considers this broker dead anyway.
    """
    now = asyncio.get_running_loop().time

    def deadline(state: SessionState) -> float | None:
        return None if state is SessionState.CONNECTED else now() + LOST_S

    async with asyncio.timeout_at(deadline(store.session_state)) as limit:
        watch = store.watch_session(lambda state: limit.reschedule(deadline(state)))
        try:
            yield
        finally:
            watch.cancel()


class ClusterMember:
    """Built inactive; active from `join` until `leave`. `close` ends it at once."""

    def __init__(
        self,
        broker_id: BrokerId,
        store: MetadataStore,
        cluster: Cluster,
        partitions: Partitions,
        tasks: asyncio.TaskGroup,
        peers: PeerConnections,
        *,
        addresses: Sequence[Endpoint],
        make_local: Callable[[Fetchers, OnBrokers], LocalBroker],
        outboxes: Sequence[Outbox[Any, Any]],
        before_truncation: Callable[[PartitionLog, int], object],
        flush: Callable[[PartitionLog], Future[int]],
        unclean_shutdown: bool,
        on_resolved: Callable[[], object],
        is_standalone: bool,
        clock: Clock,
        chance: Random,
    ) -> None:
        config = cluster.config
        self._broker_id, self._store, self._cluster = broker_id, store, cluster
        self._partitions, self._tasks, self._clock = partitions, tasks, clock
        self._is_standalone = is_standalone
        self._unclean_shutdown, self._on_resolved = unclean_shutdown, on_resolved
        self._peers, self._outboxes = peers, outboxes
        event = encode(LogDirEvent(broker=broker_id))
        self._failed_directories = FailedDirectories(
            tasks, lambda: store.create(paths.LOG_DIR_EVENT_PREFIX, event, sequential=True)
        )

        def epoch() -> int:
            return self.lifecycle.epoch

        self.lifecycle = BrokerLifecycle(
            store,
            broker_id,
            lambda: BrokerRegistration.of(
                addresses,
                clock.now_ms(),
                config.identity.broker_rack,
                unclean_shutdown=self._unclean_shutdown,
                log_dirs=config.identity.directories,
                cordoned_log_dirs=config.identity.cordoned_log_dirs,
            ),
            self._registered,
            self._registration_read,
            # The session of this broker's previous process may still be open.
            patience_s=2 * config.zookeeper.zookeeper_session_timeout_ms / 1000,
        )
        self._fetchers = fetchers(
            broker_id,
            cluster,
            FollowerLogs(partitions.store, before_truncation),
            epoch,
            clock,
            flush,
            peers.security,
        )
        local = make_local(self._fetchers, self._brokers_changed)
        self._configs = ConfigWatch(store, lambda: cluster.image, self._configs_changed)
        self._topics = TopicWatch(
            store,
            lambda: cluster.image,
            self._topics_deleted,
            self._topics_checked,
        )
        self.control_plane = ControlPlane(
            broker_id,
            cluster,
            partitions,
            local,
            self._configs.topics,
            self._configs.read_soon,
            self._existing_topics,
            self._topics.check,
        )
        self._brokers = ClusterBrokers(
            broker_id,
            self.control_plane,
            tasks,
            listener=peers.listener,
            source=peers.source,
            reached=peers.reached,
            security=peers.security,
            timeout_ms=config.controller.controller_socket_timeout_ms,
        )
        self.controller = Controller(
            store,
            broker_id,
            self._brokers,
            config=config.controller,
            static=cluster.static,
            clock=clock,
            chance=chance,
        )
        self._brokers.controller = self.controller
        self._election = ControllerElection(store, self.controller, self._controller_changed)
        self.link = self._link(epoch)
        self._features = FeatureWatch(store, self._features_changed)
        self._proposals_link = self._link(epoch)
        self._proposals = IsrProposals(broker_id, self._proposals_link, epoch, self._settled)
        self._watch = ControllerWatch(
            broker_id,
            store,
            lambda: peers.at(self.link.address),
            lambda: cluster.image,
        )

    def _link(self, epoch: Callable[[], int]) -> ControllerLink:
        return ControllerLink(
            self._broker_id,
            self.controller,
            lambda: self._cluster.image,
            listener=self._peers.listener,
            source=self._peers.source,
            reached=self._peers.reached,
            security=self._peers.security,
            broker_epoch=epoch,
            timeout_ms=self._cluster.config.network.request_timeout_ms,
        )

    async def join(self) -> list[asyncio.Task[None]]:
        """Register, and take part in the controller election; returns the tasks that run both."""
        await self.lifecycle.register()
        running = [self._tasks.create_task(self.controller.run())]
        await self._election.start()
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "controller election": self._election.run
        }
        if not self._is_standalone:
            loops |= {
                "registration": self.lifecycle.run,
                "settings": self._configs.run,
                "deleted topics": self._topics.run,
                "features": self._features.run,
                "replica fetchers": self._fetchers.run,
                "ISR shrinking": lambda: shrinking(self._partitions, self._cluster),
                "ISR proposals": self._proposals.run,
                "controller watch": self._watch.run,
                "preferred leaders": self._elect_preferred_leaders,
            }
        running += [self._tasks.create_task(supervised(name, run)) for name, run in loops.items()]
        await self._announced()
        return running

    async def _announced(self) -> None:
        """Wait until the controller has announced this broker: until then, this broker's Metadata
        responses do not list it. Continues after a timeout if the controller is busy.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(ANNOUNCED_S):
                while self._broker_id not in self._cluster.image.brokers:
                    await asyncio.sleep(ANNOUNCED_CHECK_S)

    def propose(self, proposal: IsrProposal) -> None:
        self._proposals.propose(proposal)

    async def leave(self) -> None:
        """Controlled shutdown: move leadership away, and wait until all brokers are notified."""
        config = self._cluster.config.controller
        try:
            async with while_connected(self._store):
                await request_controlled_shutdown(
                    self._broker_id, self.lifecycle.epoch, self.link, config
                )
        except TimeoutError:
            logger.warning(
                "stopping without a controlled shutdown: the metadata store cannot be reached"
            )
        with suppress(TimeoutError):
            async with asyncio.timeout(DELIVERY_S):
                await self._brokers.delivered()

    def close(self) -> None:
        """Stop sending to other brokers."""
        self._failed_directories.close()
        self._brokers.resign()
        for outbox in self._outboxes:
            outbox.close()

    def directory_failed(self, path: Path) -> None:
        if not self._is_standalone:
            self._failed_directories.report(path)

    async def _existing_topics(self, names: Collection[str]) -> Collection[str]:
        await catch_up(self._store)
        nodes = {paths.topic(name): name for name in names}
        return {nodes[path] for path in await self._store.get_many(nodes)}

    def _brokers_changed(self, brokers: Collection[BrokerId]) -> None:
        for outbox in self._outboxes:
            outbox.keep_only(brokers)

    def _registered(self, epoch: int) -> None:
        self.control_plane.registered(epoch)
        self._topics.check()

    def _registration_read(self, registration: BrokerRegistration) -> None:
        """Note that the controller has cleared the unclean-shutdown mark: no later registration, of
        this process or the next, sets it again.
        """
        if self._unclean_shutdown and registration.unclean_shutdown is not True:
            self._unclean_shutdown = False
            self._on_resolved()

    def _controller_changed(self, controller: BrokerId) -> None:
        if controller not in {self._cluster.image.controller, NO_LEADER}:
            logger.info("broker %s is the controller", controller)
        self._cluster.image = self._cluster.image.apply(ImageDelta(controller=controller))
        self._topics.check()
        if controller != NO_LEADER:
            self.link.controller_changed()
            self._proposals_link.controller_changed()

    def _features_changed(self, features: Features) -> None:
        """Apply newer feature levels. The controller's image has them already."""
        if features.epoch > self._cluster.image.features.epoch:
            self._cluster.image = self._cluster.image.apply(ImageDelta(features=features))

    async def _configs_changed(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        if self.controller.is_active:
            self.controller.reread_configs()
            return True
        return await self.control_plane.apply_from_store(delta, read_at)

    async def _topics_deleted(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        """The controller skips this: its image follows from its own reads and writes."""
        return self.controller.is_active or await self.control_plane.apply_from_store(
            delta, read_at
        )

    async def _topics_checked(self) -> None:
        await self.control_plane.set_unknown_aside()

    def _settled(self, proposal: IsrProposal, settlement: Settlement) -> None:
        partition = self._partitions.find(*proposal.topic_partition)
        if partition is not None:
            settle(partition, proposal, settlement)

    async def _elect_preferred_leaders(self) -> None:
        while True:
            config = self._cluster.config.controller
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable and self.controller.is_active:
                await self.controller.balance_leaders()
