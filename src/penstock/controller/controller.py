"""The controller: one broker of the cluster, which decides for all of them.

Each call is one operation: it decides on the image, writes to the store, applies the write to the
image and sends it to the brokers. The rules are in the modules around this one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from random import Random, SystemRandom
from typing import TypeVar

from penstock.clock import Clock
from penstock.config.controller import ControllerConfig
from penstock.config.effective import BrokerLayers, stored_layers
from penstock.controller import (
    broker_changes,
    config_changes,
    configs,
    controlled_shutdown,
    failover,
    features,
    found_topics,
    isr_changes,
    node_changes,
    producer_ids,
    reassignment,
    requested_elections,
    topic_life,
    unclean_shutdown,
)
from penstock.controller.configs import BrokerResource, ConfigAlteration, ConfigResource
from penstock.controller.context import ControllerContext, ElectionCounts
from penstock.controller.epoch import ControllerEpoch, NotController
from penstock.controller.features import FeatureUpdate
from penstock.controller.found_topics import FoundTopic
from penstock.controller.isr_changes import RequestedIsr
from penstock.controller.operations import Operations
from penstock.controller.producer_ids import ProducerIds
from penstock.controller.repair import AllowsUnclean, repair, repair_topic, unclean_elections
from penstock.controller.state_change import Brokers
from penstock.controller.topic_rules import TopicDeletionDisabled
from penstock.controller.topics import (
    MorePartitions,
    PlannedTopic,
    TopicSpec,
    check_total,
    planned,
)
from penstock.errors import KafkaError
from penstock.loop import with_turns
from penstock.metadata.image import ClusterImage, PartitionRegistration, Topic
from penstock.metadata.reader import read_image
from penstock.metadata.store import Change, MetadataStore, Subscription
from penstock.types import BrokerId, TopicPartition
from penstock.wire.enums import ElectionType

T = TypeVar("T")

logger = logging.getLogger(__name__)

REPAIR_AGAIN_S = 5.0
"""Pause between attempts to write a state that the store refuses, for example for lack of
permission.
"""

PLANS_A_TURN = 100
"""New topics that are planned before other requests get their turn."""

RESEND_FAILED_S = 10.0
"""Pause between attempts of a broker to use replicas that have no usable log, or to delete logs."""


class Controller:
    """Active from `start` until `resign`, while `run` is running. Belongs to the event loop.

    `static` are the broker's settings as they were given at start, by name.
    """

    def __init__(
        self,
        store: MetadataStore,
        broker: BrokerId,
        brokers: Brokers,
        *,
        config: ControllerConfig,
        static: Mapping[str, str],
        clock: Clock,
        chance: Random | None = None,
    ) -> None:
        self._store, self._broker, self._brokers = store, broker, brokers
        self._config, self._static, self._clock = config, static, clock
        self._chance = chance or SystemRandom()
        self._operations = Operations(self._operation_failed)
        self._active: ControllerContext | None = None
        """None while another broker is the controller."""
        self.counts = ElectionCounts()
        self._watches: Subscription
        self._next_repair: asyncio.TimerHandle | None = None
        self._next_resend: asyncio.TimerHandle | None = None
        self.on_resigned: Callable[[], object] = lambda: None

    async def start(self) -> None:
        """Win the controller election and take over.

        This broker must be registered already: only live brokers get partitions to lead.
        """
        async with self._operations.turn:
            await self._start()
        self.check_for_changes()

    async def _start(self) -> None:
        epoch = await ControllerEpoch.win(self._store, self._broker, self._clock.now_ms())
        # Watch before reading: a change in between is then read again.
        watches = await self._store.watch(
            self._node_changed,
            children=node_changes.WATCHED_CHILDREN,
            data=node_changes.TOOL_REQUESTS,
        )
        try:
            image = await read_image(self._store)
            context = ControllerContext(
                self._store, epoch, image, self._broker, self._brokers, self.counts
            )
            context.repair_soon, context.repair_later = self._repair_soon, self._repair_later
            context.repair_topic_soon = self._repair_topic_soon
            context.chance = self._chance
            context.may_delete_topics = self._config.delete_topic_enable
            await failover.take_over(context, self._allows_unclean(context))
        except BaseException:
            watches.cancel()
            self._brokers.resign()  # it may have opened its channels already
            raise
        self._active, self._watches = context, watches
        logger.info("broker %s is the controller, in epoch %d", self._broker, epoch.number)

    def resign(self) -> None:
        """Decide nothing more until the next `start`."""
        if self._active is not None:
            logger.info("broker %s is no longer the controller", self._broker)
            self._active.is_resigned = True
            self._active = None
            self._watches.cancel()
            self._brokers.resign()
            self.on_resigned()

    @property
    def broker(self) -> BrokerId:
        """The broker in whose process this controller is, active or not."""
        return self._broker

    @property
    def is_active(self) -> bool:
        return self._active is not None

    def check_for_changes(self) -> None:
        """Read every watched node again: watches miss changes made while the store was away."""
        for path in (*node_changes.WATCHED_CHILDREN, *node_changes.TOOL_REQUESTS):
            self._process(path)
        self.reread_configs()

    def _node_changed(self, change: Change) -> None:
        self._process(change.path)

    def _process(self, path: str) -> None:
        self._schedule(
            lambda context: node_changes.process(context, path, self._allows_unclean(context))
        )

    def _repair_soon(self) -> None:
        async def operation(context: ControllerContext) -> None:
            await repair(context, self._allows_unclean(context))
            moving = reassignment.in_progress(context.image)
            await node_changes.progress_reassignments(context, moving)
            await topic_life.resume_deletions(context)

        self._schedule(operation)

    def _repair_topic_soon(self, topic: str) -> None:
        async def operation(context: ControllerContext) -> None:
            await repair_topic(context, self._allows_unclean(context), topic)
            moving = reassignment.in_progress(context.image)
            await node_changes.progress_reassignments(
                context, [each for each in moving if each.topic == topic]
            )

        self._schedule(operation)

    def _repair_later(self) -> None:
        def repair_now() -> None:
            self._next_repair = None
            self._repair_soon()

        if self._next_repair is None:
            loop = asyncio.get_running_loop()
            self._next_repair = loop.call_later(REPAIR_AGAIN_S, repair_now)

    def _resend_later(self) -> None:
        def resend_now() -> None:
            self._next_resend = None
            self._schedule(broker_changes.resend_failed)
            self._schedule(topic_life.resend_deletions)

        if self._next_resend is None:
            loop = asyncio.get_running_loop()
            self._next_resend = loop.call_later(RESEND_FAILED_S, resend_now)

    async def run(self) -> None:
        """Carry operations out until cancelled."""
        await self._operations.run()

    def _operation_failed(self, error: Exception) -> None:
        """Resign after an operation that leaves the state of the store unknown, or that failed
        without a caller to see its error. The next controller, perhaps this one, reads everything
        again.
        """
        if self.is_active:
            logger.warning("the controller resigns: %s", error)
            self.resign()

    @property
    def image(self) -> ClusterImage:
        return self._context.image

    @property
    def _context(self) -> ControllerContext:
        if self._active is None:
            raise NotController(f"broker {self._broker} is not the controller")
        return self._active

    async def create_topics(
        self, news: Sequence[TopicSpec], *, validate_only: bool = False
    ) -> list[PlannedTopic | KafkaError]:
        """Each topic as created, or why it was refused; in the order of `news`."""
        check_total(news, self._config)

        async def operation() -> list[PlannedTopic | KafkaError]:
            plans = [each async for each in with_turns(self._planned(news), PLANS_A_TURN)]
            valid = [each for each in plans if isinstance(each, PlannedTopic)]
            if validate_only or not valid:
                return plans
            created = iter(await topic_life.create(self._context, valid))
            return [each if isinstance(each, KafkaError) else next(created) for each in plans]

        return await self._operations.submit(operation)

    def _planned(self, news: Iterable[TopicSpec]) -> Iterator[PlannedTopic | KafkaError]:
        for new in news:
            try:
                yield planned(new, self.image, self._config, self.layers(), self._chance)
            except KafkaError as error:
                yield error

    async def delete_topics(self, names: Sequence[str]) -> dict[str, Topic | KafkaError]:
        """Each topic as it was before its deletion, or why it was refused."""
        if not self._config.delete_topic_enable:
            raise TopicDeletionDisabled("delete.topic.enable is false")

        async def operation(context: ControllerContext) -> dict[str, Topic | KafkaError]:
            deleted = await topic_life.delete(context, names)
            await node_changes.finish_request(context)
            return deleted

        return await self._submit(operation)

    async def create_partitions(
        self, more: MorePartitions, *, validate_only: bool = False
    ) -> Topic:
        """The topic with its new partitions."""
        return await self._submit(
            lambda context: topic_life.grow(context, more, validate_only=validate_only)
        )

    async def register_found(self, found: Sequence[FoundTopic]) -> list[PlannedTopic | KafkaError]:
        """Register topics whose logs this broker has already."""
        return await self._submit(lambda context: found_topics.register(context, found))

    async def alter_config(
        self,
        resource: ConfigResource,
        alterations: Sequence[ConfigAlteration],
        *,
        validate_only: bool = False,
    ) -> None:
        """Alter some settings and keep the others (KIP-339)."""
        await self._configure(
            resource,
            lambda before: configs.altered(before, resource, alterations),
            validate_only=validate_only,
        )

    async def replace_config(
        self,
        resource: ConfigResource,
        settings: Mapping[str, str],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set these settings and reset all others."""
        await self._configure(resource, lambda _: settings, validate_only=validate_only)

    async def _configure(
        self,
        resource: ConfigResource,
        alteration: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool,
    ) -> None:
        broker = resource.id if isinstance(resource, BrokerResource) else None
        await self._submit(
            lambda context: config_changes.alter(
                context,
                resource,
                alteration,
                self.layers(broker),
                None if validate_only else self._clock.now_ms(),
            )
        )

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """None for each partition that got a new leader, else why it did not."""
        return await self._submit(
            lambda context: requested_elections.elect(context, election_type, partitions)
        )

    async def reassign(
        self,
        topic_partition: TopicPartition,
        target: Sequence[int] | None,
        *,
        factor_may_change: bool = True,
    ) -> None:
        """Give a partition these replicas; None cancels a reassignment in progress."""

        async def operation(context: ControllerContext) -> None:
            await reassignment.reassign(
                context, topic_partition, target, factor_may_change=factor_may_change
            )
            await node_changes.finish_request(context)

        await self._submit(operation)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> None:
        """All updates, or none."""
        await self._submit(
            lambda context: features.update(context, updates, validate_only=validate_only)
        )

    async def next_producer_id_block(
        self, broker: BrokerId | None = None, broker_epoch: int = -1
    ) -> ProducerIds:
        """A block for the given broker, or for this one."""
        owner = self._broker if broker is None else broker
        return await self._submit(
            lambda context: producer_ids.next_block(context, owner, broker_epoch)
        )

    async def alter_isrs(
        self, leader: BrokerId, broker_epoch: int, requested: Sequence[RequestedIsr]
    ) -> Mapping[TopicPartition, PartitionRegistration | KafkaError]:
        """Each partition after the change, or why it was refused. Completes reassignments whose
        new replicas are in sync now.
        """

        async def operation() -> Mapping[TopicPartition, PartitionRegistration | KafkaError]:
            results = await isr_changes.alter_isrs(self._context, leader, broker_epoch, requested)
            await node_changes.progress_reassignments(
                self._context, [each.topic_partition for each in requested]
            )
            await unclean_shutdown.clear_resolved(self._context)
            return results

        return await self._operations.submit(operation)

    async def shut_down(self, broker: BrokerId, epoch: int) -> list[TopicPartition]:
        """Move leadership away from a broker that is about to stop; returns the partitions it still
        leads.
        """
        return await self._submit(
            lambda context: controlled_shutdown.shut_down(
                context, broker, epoch, self._allows_unclean(context)
            )
        )

    async def balance_leaders(self) -> None:
        """Elect the preferred leaders of brokers that lead too few partitions."""
        percentage = self._config.leader_imbalance_per_broker_percentage
        await self._submit(lambda context: requested_elections.balance(context, percentage))

    def replicas_deleted(self, broker: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        """A broker has deleted its logs of these partitions of deleted topics."""
        self._schedule(lambda context: topic_life.replicas_deleted(context, broker, partitions))

    def replicas_undeleted(self, broker: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        """A broker could not delete its logs of these partitions; it is asked again later."""
        self._schedule(lambda context: topic_life.replicas_undeleted(context, broker, partitions))
        self._resend_later()

    def replicas_failed(
        self, broker: BrokerId, epoch: int, partitions: Sequence[TopicPartition]
    ) -> None:
        """A broker reports replicas in a failed log directory."""
        self._schedule(
            lambda context: broker_changes.replicas_failed(
                context, broker, epoch, partitions, self._allows_unclean(context)
            )
        )
        self._resend_later()

    def replicas_usable(
        self, broker: BrokerId, epoch: int, partitions: Sequence[TopicPartition]
    ) -> None:
        """A broker reports replicas with a working log. Most were never without one."""
        if self._active is not None and self._active.replicas_on_offline_dirs:
            self._schedule(
                lambda context: broker_changes.replicas_usable(
                    context, broker, epoch, partitions, self._allows_unclean(context)
                )
            )

    def connection_refused(self, broker: BrokerId, epoch: int) -> None:
        """A broker refuses connections, so its process is gone: do not wait for its session."""
        self._schedule(lambda context: broker_changes.remove_registration(context, broker, epoch))

    def reread_configs(self) -> None:
        """Another writer, such as one of Kafka's tools, may have changed settings in the store."""
        self._schedule(config_changes.reread)

    def layers(self, broker: BrokerId | None = None) -> BrokerLayers:
        """The settings of a broker, by default this one, including later alterations."""
        image, broker = self.image, self._broker if broker is None else broker
        return stored_layers(
            self._static, image.default_broker_config, image.broker_configs.get(broker, {})
        )

    def _schedule(self, operation: Callable[[ControllerContext], Awaitable[None]]) -> None:
        """Queue the operation; it is dropped if this broker is not the controller by then."""

        async def if_active() -> None:
            if self._active is not None:
                await operation(self._active)

        self._operations.schedule(if_active)

    async def _submit(self, operation: Callable[[ControllerContext], Awaitable[T]]) -> T:
        return await self._operations.submit(lambda: operation(self._context))

    def _allows_unclean(self, context: ControllerContext) -> AllowsUnclean:
        return unclean_elections(context, self._static)
