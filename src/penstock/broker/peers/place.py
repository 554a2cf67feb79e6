"""A broker's place among the others: its registration, its candidacy, and the ways to them.

On a broker alone everything is the same, but there is nobody to speak to.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from penstock.broker.cluster import Cluster
from penstock.broker.peers.cluster_brokers import ClusterBrokers
from penstock.broker.peers.config_watch import ConfigWatch
from penstock.broker.peers.connections import PeerConnections
from penstock.broker.peers.controller_link import ControllerLink
from penstock.broker.peers.controller_watch import ControllerWatch
from penstock.broker.peers.departure import leave
from penstock.broker.peers.feature_watch import FeatureWatch
from penstock.broker.peers.isr_proposals import IsrProposals
from penstock.broker.peers.membership import Membership
from penstock.broker.peers.orders import Orders
from penstock.broker.peers.outbox import Outbox
from penstock.broker.peers.topic_watch import TopicWatch
from penstock.broker.replicas.environment import fetchers, shrinking
from penstock.broker.replicas.local import LocalBroker
from penstock.broker.supervision import supervised
from penstock.clock import Clock
from penstock.config.listener import Endpoint
from penstock.controller.controller import Controller
from penstock.controller.controller_election import ControllerElection
from penstock.log.partition_log import PartitionLog
from penstock.metadata import paths
from penstock.metadata.features import Features
from penstock.metadata.image import ClusterImage, ImageDelta
from penstock.metadata.records import NO_LEADER, LogDirEvent, encode
from penstock.metadata.refusal import StoreError
from penstock.metadata.registration import BrokerRegistration
from penstock.metadata.store import MetadataStore, SessionState
from penstock.replication.fetchers import Fetchers
from penstock.replication.follower import FollowerLogs
from penstock.replication.partitions import Partitions
from penstock.replication.proposal import IsrProposal, Settlement
from penstock.types import BrokerId

logger = logging.getLogger(__name__)

Alive = Callable[[Collection[BrokerId]], object]

RESTART_S = 1.0
DELIVERY_S = 1.0
LOST_S = 1.0
WELCOME_S = 10.0
WELCOME_CHECK_S = 0.01


@asynccontextmanager
async def while_connected(store: MetadataStore) -> AsyncIterator[None]:
    """`TimeoutError` soon after the session with the store is lost: no controller can decide then,
    or it takes this broker for dead anyhow.
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


class Place:
    """Put together here, taken by `take`, left when its tasks are cancelled."""

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
        make_local: Callable[[Fetchers, Alive], LocalBroker],
        outboxes: Sequence[Outbox[Any, Any]],
        before_cut: Callable[[PartitionLog, int], object],
        unclean_shutdown: bool,
        clock: Clock,
        chance: Random,
    ) -> None:
        config = cluster.config
        self._broker_id, self._store, self._cluster = broker_id, store, cluster
        self._partitions, self._tasks, self._clock = partitions, tasks, clock
        self._is_alone = config.zookeeper.zookeeper_connect is None
        self._is_closed = False
        self._may_lack_records = unclean_shutdown
        self._peers, self._outboxes = peers, outboxes

        def epoch() -> int:
            return self.membership.epoch

        self.membership = Membership(
            store,
            broker_id,
            lambda: BrokerRegistration.of(
                addresses,
                clock.now_ms(),
                config.identity.broker_rack,
                unclean_shutdown=self._may_lack_records,
            ),
            self._registered,
            self._seen,
            # A former process of this broker may still have its session.
            patience_s=2 * config.zookeeper.zookeeper_session_timeout_ms / 1000,
        )
        self._fetchers = fetchers(
            broker_id, cluster, FollowerLogs(partitions.store, before_cut), epoch, clock
        )
        local = make_local(self._fetchers, self._alive)
        self._configs = ConfigWatch(store, lambda: cluster.image, self._configs_changed)
        self._topics = TopicWatch(store, lambda: cluster.image, self._topics_gone)
        self.orders = Orders(
            broker_id,
            cluster,
            partitions,
            local,
            self._configs.topics,
            self._configs.want,
            self._topics_there,
        )
        self._brokers = ClusterBrokers(
            broker_id,
            self.orders,
            tasks,
            listener=peers.listener,
            source=peers.source,
            heard=peers.heard,
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
        self._candidacy = ControllerElection(store, self.controller, self._heard_controller)
        self.link = self._link(epoch)
        self._features = FeatureWatch(store, self._heard_features)
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
            heard=self._peers.heard,
            broker_epoch=epoch,
        )

    async def take(self) -> list[asyncio.Task[None]]:
        """Join, and run for controller. The tasks that keep the place come back."""
        await self.membership.join()
        running = [self._tasks.create_task(self.controller.run())]
        await self._candidacy.start()
        loops: dict[str, Callable[[], Awaitable[None]]] = {"candidacy": self._candidacy.run}
        if not self._is_alone:
            loops |= {
                "membership": self.membership.run,
                "settings": self._configs.run,
                "deleted topics": self._topics.run,
                "features": self._features.run,
                "copying": self._fetchers.run,
                "in-sync sets": lambda: shrinking(self._partitions, self._cluster),
                "proposals": self._proposals.run,
                "the controller's life": self._watch.run,
                "balance of leaders": self._balance,
            }
        running += [self._tasks.create_task(supervised(name, run)) for name, run in loops.items()]
        await self._known()
        return running

    async def _known(self) -> None:
        """Until the controller has told this broker that it is there: whoever asks it for metadata
        before would hear of a cluster without it. A controller that is busy is not waited for.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(WELCOME_S):
                while self._broker_id not in self._cluster.image.brokers:
                    await asyncio.sleep(WELCOME_CHECK_S)

    def propose(self, proposal: IsrProposal) -> None:
        self._proposals.propose(proposal)

    async def leave(self) -> None:
        """Give away what this broker leads, and see to it that all have heard of it."""
        config = self._cluster.config.controller
        try:
            async with while_connected(self._store):
                await leave(self._broker_id, self.membership.epoch, self.link, config)
        except TimeoutError:
            logger.warning("leaving without a handover: the metadata store cannot be reached")
        with suppress(TimeoutError):
            async with asyncio.timeout(DELIVERY_S):
                await self._brokers.delivered()

    def close(self) -> None:
        """Speak to nobody any more."""
        self._is_closed = True
        self._brokers.resign()
        for outbox in self._outboxes:
            outbox.close()

    def directory_failed(self, path: Path) -> None:
        """Tell the controller, which asks then which replicas are gone with it.

        Not if this broker leaves: everything of it is gone then.
        """
        if not self._is_alone and not self._is_closed:
            self._tasks.create_task(self._tell_failure(path))

    async def _tell_failure(self, path: Path) -> None:
        event = encode(LogDirEvent(broker=self._broker_id))
        while True:
            try:
                await self._store.create(paths.LOG_DIR_EVENT_PREFIX, event, sequential=True)
            except StoreError as error:
                logger.warning("that %s has failed is not told yet: %s", path, error)
                await asyncio.sleep(RESTART_S)
            else:
                return

    async def _topics_there(self, names: Collection[str]) -> Collection[str]:
        nodes = {paths.topic(name): name for name in names}
        return {nodes[path] for path in await self._store.get_many(nodes)}

    def _alive(self, brokers: Collection[BrokerId]) -> None:
        for outbox in self._outboxes:
            outbox.only(brokers)

    def _registered(self, epoch: int) -> None:
        self.orders.registered(epoch)
        self._topics.look()

    def _seen(self, registration: BrokerRegistration) -> None:
        """Once the controller trusts this broker, losing its session costs it no trust."""
        self._may_lack_records &= registration.unclean_shutdown is True

    def _heard_controller(self, controller: BrokerId) -> None:
        if controller not in {self._cluster.image.controller, NO_LEADER}:
            logger.info("broker %s is the controller", controller)
        self._cluster.image = self._cluster.image.apply(ImageDelta(controller=controller))
        self._topics.look()
        if controller != NO_LEADER:
            self.link.controller_changed()
            self._proposals_link.controller_changed()

    def _heard_features(self, features: Features) -> None:
        """A later epoch than the image's; the controller has its own levels in there already."""
        if features.epoch > self._cluster.image.features.epoch:
            self._cluster.image = self._cluster.image.apply(ImageDelta(features=features))

    async def _configs_changed(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        if self.controller.is_active:
            self.controller.reread_configs()
            return True
        return await self.orders.heard(delta, read_at)

    async def _topics_gone(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        """The controller's own image is what it has read and written itself."""
        return self.controller.is_active or await self.orders.heard(delta, read_at)

    def _settled(self, proposal: IsrProposal, settlement: Settlement) -> None:
        partition = self._partitions.find(*proposal.where)
        if partition is not None:
            partition.settle(proposal, settlement)

    async def _balance(self) -> None:
        while True:
            config = self._cluster.config.controller
            await asyncio.sleep(config.leader_imbalance_check_interval_seconds)
            if config.auto_leader_rebalance_enable and self.controller.is_active:
                await self.controller.balance_leaders()
