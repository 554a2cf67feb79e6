"""The controller: whoever holds the office decides for the whole cluster.

Each call is one operation: it plans on the image, writes to the store, takes what was written into
the image and tells the brokers. The rules are in the modules around this one.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from random import Random, SystemRandom
from typing import TypeVar

from msgspec import Struct

from penstock.clock import Clock
from penstock.config.controller import ControllerConfig
from penstock.config.effective import BrokerLayers, effective_topic_config
from penstock.controller import (
    broker_life,
    config_changes,
    configs,
    controlled_shutdown,
    doubt,
    elections,
    features,
    isr_changes,
    notices,
    producer_ids,
    reassignment,
    topic_life,
)
from penstock.controller.change import Brokers, PartitionChange
from penstock.controller.configs import BrokerResource, ConfigAlteration, ConfigResource
from penstock.controller.elections import ElectionType
from penstock.controller.features import FeatureUpdate
from penstock.controller.isr_changes import WantedIsr
from penstock.controller.office import ElectionCounts, Office
from penstock.controller.operations import Operations
from penstock.controller.partition_states import bring_online, write_elected
from penstock.controller.producer_ids import ProducerIds
from penstock.controller.repair import Unclean, repair, repairs
from penstock.controller.term import NotController, Term
from penstock.controller.topic_rules import TopicAlreadyExists
from penstock.controller.topics import (
    MorePartitions,
    NewTopic,
    PlannedTopic,
    check_total,
    grown,
    planned,
)
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import ClusterImage, ImageDelta, Partition, Topic
from penstock.metadata.reader import read_image
from penstock.metadata.store import Change, MetadataStore, Subscription
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid

T = TypeVar("T")

logger = logging.getLogger(__name__)


class TopicDeletionDisabled(KafkaError):
    """`delete.topic.enable` is false."""

    code = ErrorCode.TOPIC_DELETION_DISABLED


class FoundTopic(Struct, frozen=True):
    """A topic whose logs are there already, with the last leader epoch of each; -1: none."""

    name: str
    id: Uuid
    last_epochs: Mapping[int, int]
    configs: Mapping[str, str] = {}


class Controller:
    """Decides once it has `start`ed and while its `run` goes on. Belongs to the event loop.

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
        self._operations = Operations(self._failed)
        self._holder: Office | None = None
        self.counts = ElectionCounts()
        self._watches: Subscription
        self.resigned: Callable[[], object] = lambda: None
        """Called after the office was given up."""

    async def start(self) -> None:
        """Win the office, finish what the last controller has begun, and tell the brokers all.

        The broker is registered by then: only live brokers get partitions to lead.
        """
        async with self._operations.turn:
            await self._start()
        self.look_again()

    async def _start(self) -> None:
        term = await Term.begin(self._store, self._broker, self._clock.now_ms())
        # Watched first and read then: what changes meanwhile is looked at again.
        watches = await self._store.watch(
            self._noticed, children=notices.WATCHED, data=notices.ASKED
        )
        try:
            image = await read_image(self._store)
            office = Office(self._store, term, image, self._broker, self._brokers, self.counts)
            office.repair_soon = self._repair_soon
            office.may_delete_topics = self._config.delete_topic_enable
            await features.prepare(office)
            await self._take_over(office)
        except BaseException:
            watches.cancel()
            raise
        self._holder, self._watches = office, watches
        logger.info("broker %s is the controller, in epoch %d", self._broker, term.epoch)

    async def _take_over(self, office: Office) -> None:
        await topic_life.resume_deletions(office)
        changes = {
            each.where: each for each in await bring_online(office, office.image.topics.values())
        }
        # A broker whose machine went down may have come back while nobody was in office: then its
        # place in an ISR is still that of its former life. Whether it is, nobody can tell.
        elected = repairs(office, self._unclean(office), suspected=office.doubtful)
        changes |= await write_elected(office, elected)
        delta = ImageDelta(partitions={each.where: each.state for each in changes.values()})
        await office.announce(
            delta,
            partitions=_all_partitions(office.image.apply(delta), changes),
            joined=office.image.brokers,
            topic_configs=office.image.topic_configs,
            broker_configs=True,
        )
        await doubt.clear(office)
        await reassignment.resume(office)

    def resign(self) -> None:
        """Decide nothing any more, until started anew."""
        if self._holder is not None:
            logger.info("broker %s is not the controller any more", self._broker)
            self._holder.is_over = True
            self._holder = None
            self._watches.cancel()
            self._brokers.resign()
            self.resigned()

    @property
    def broker(self) -> BrokerId:
        """Whose controller this is, in office or not."""
        return self._broker

    @property
    def in_office(self) -> bool:
        return self._holder is not None

    def look_again(self) -> None:
        """Read what others have put into the store: while it was away, nobody told of it."""
        for path in (*notices.WATCHED, *notices.ASKED):
            self._look_at(path)
        self.reread_configs()

    def _noticed(self, change: Change) -> None:
        """Something was changed in the store by others than this controller, perhaps."""
        self._look_at(change.path)

    def _look_at(self, path: str) -> None:
        self._schedule(lambda office: notices.look(office, path, self._unclean(office)))

    def _repair_soon(self) -> None:
        async def operation(office: Office) -> None:
            await repair(office, self._unclean(office))
            await reassignment.progress(office, reassignment.moving(office))

        self._schedule(operation)

    async def run(self) -> None:
        """Carry operations out until cancelled."""
        await self._operations.run()

    def _failed(self, error: Exception) -> None:
        """An operation has failed that nobody waits for, or has failed for everybody.

        What is in the store is in doubt then, or belongs to another controller: the office is
        given up, and whoever wins it next reads everything anew.
        """
        if self.in_office:
            logger.warning("the controller gives up its office: %s", error)
            self.resign()

    @property
    def image(self) -> ClusterImage:
        return self._office.image

    @property
    def _office(self) -> Office:
        if self._holder is None:
            raise NotController(f"broker {self._broker} is not the controller")
        return self._holder

    async def create_topics(
        self, news: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[PlannedTopic | KafkaError]:
        """Each topic as it is now, or why there is none; in the order of `news`."""
        check_total(news, self._config)

        async def operation() -> list[PlannedTopic | KafkaError]:
            plans = list(self._planned(news))
            valid = [each for each in plans if isinstance(each, PlannedTopic)]
            if validate_only or not valid:
                return plans
            made = iter(await topic_life.create(self._office, valid))
            return [each if isinstance(each, KafkaError) else next(made) for each in plans]

        return await self._operations.submit(operation)

    def _planned(self, news: Iterable[NewTopic]) -> Iterator[PlannedTopic | KafkaError]:
        for new in news:
            try:
                yield planned(new, self.image, self._config, self.layers(), self._chance)
            except KafkaError as error:
                yield error

    async def delete_topics(self, names: Sequence[str]) -> dict[str, Topic | KafkaError]:
        """Each topic as it was, or why it is still there."""
        if not self._config.delete_topic_enable:
            raise TopicDeletionDisabled("delete.topic.enable is false")
        return await self._submit(lambda office: topic_life.delete(office, names))

    async def create_partitions(
        self, more: MorePartitions, *, validate_only: bool = False
    ) -> Topic:
        """The topic as it is then."""

        async def operation() -> Topic:
            partitions = grown(more, self.image)
            if validate_only:
                return self.image.topics[more.name]
            return await topic_life.grow(self._office, more.name, partitions)

        return await self._operations.submit(operation)

    async def adopt(self, found: Sequence[FoundTopic]) -> list[PlannedTopic | KafkaError]:
        """Register topics whose logs this broker has: all replicas here, leaders in new epochs."""
        plans, epochs = [], {}
        for topic in found:
            partitions = {index: Partition((self._broker,)) for index in topic.last_epochs}
            plans.append(PlannedTopic(Topic(topic.name, topic.id, partitions), topic.configs))
            for index, epoch in topic.last_epochs.items():
                epochs[TopicPartition(topic.name, index)] = LeaderEpoch(epoch + 1)

        async def operation() -> list[PlannedTopic | KafkaError]:
            unknown = [each for each in plans if each.topic.name not in self.image.topics]
            made = iter(await topic_life.create(self._office, unknown, epochs))
            return [
                next(made)
                if each in unknown
                else TopicAlreadyExists(f"topic {each.topic.name} is registered already")
                for each in plans
            ]

        return await self._operations.submit(operation)

    async def alter_config(
        self,
        resource: ConfigResource,
        alterations: Sequence[ConfigAlteration],
        *,
        validate_only: bool = False,
    ) -> None:
        """Alter some settings and leave the others (KIP-339)."""
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
        """Give settings, and take back all that are not named."""
        await self._configure(resource, lambda _: settings, validate_only=validate_only)

    async def _configure(
        self,
        resource: ConfigResource,
        alter: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool,
    ) -> None:
        async def operation() -> None:
            before = configs.current(resource, self.image)
            broker = resource.id if isinstance(resource, BrokerResource) else None
            after = configs.checked(resource, alter(before), self.layers(broker))
            if not validate_only and after != before:
                now_ms = self._clock.now_ms()
                await config_changes.write(self._office, resource, after, now_ms)

        await self._operations.submit(operation)

    async def elect_leaders(
        self, kind: ElectionType, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """None for each partition that has a new leader, else why it has not."""
        return await self._submit(lambda office: elections.elect(office, kind, partitions))

    async def reassign(
        self,
        where: TopicPartition,
        target: Sequence[int] | None,
        *,
        factor_may_change: bool = True,
    ) -> None:
        """Give a partition these replicas; None cancels a move that is under way."""
        await self._submit(
            lambda office: reassignment.reassign(
                office, where, target, factor_may_change=factor_may_change
            )
        )

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False
    ) -> None:
        """All of them, or none."""

        async def operation() -> None:
            before = self.image.features
            after = features.updated(before, updates, self._broker)
            if not validate_only and after != before.levels:
                await features.write(self._office, after)

        await self._operations.submit(operation)

    async def next_producer_id_block(
        self, broker: BrokerId | None = None, broker_epoch: int = -1
    ) -> ProducerIds:
        """A block for this broker, or for another that asks."""
        owner = self._broker if broker is None else broker

        async def operation() -> ProducerIds:
            controlled_shutdown.check_broker_epoch(self._office, owner, broker_epoch)
            return await producer_ids.next_block(self._office, owner)

        return await self._operations.submit(operation)

    async def alter_isrs(
        self, leader: BrokerId, broker_epoch: int, wanted: Sequence[WantedIsr]
    ) -> Mapping[TopicPartition, Partition | KafkaError]:
        """Each partition as it is now, or why its ISR stays; moves that it completes end."""

        async def operation() -> Mapping[TopicPartition, Partition | KafkaError]:
            outcomes = await isr_changes.alter_isrs(self._office, leader, broker_epoch, wanted)
            if await reassignment.progress(self._office, [each.where for each in wanted]):
                await notices.moves_done(self._office)
            await doubt.clear(self._office)
            return outcomes

        return await self._operations.submit(operation)

    async def shut_down(self, broker: BrokerId, epoch: int) -> list[TopicPartition]:
        """Move everything away from a broker that is about to stop; what cannot be is told."""
        return await self._submit(
            lambda office: controlled_shutdown.shut_down(
                office, broker, epoch, self._unclean(office)
            )
        )

    async def balance_leaders(self) -> None:
        """Give leadership back to the preferred replicas of brokers that lead too little."""
        percentage = self._config.leader_imbalance_per_broker_percentage
        await self._submit(lambda office: elections.balance(office, percentage))

    def replicas_deleted(self, broker: BrokerId, partitions: Sequence[TopicPartition]) -> None:
        """A broker says that its logs of topics that go are gone."""
        self._schedule(lambda office: topic_life.replicas_deleted(office, broker, partitions))

    def replicas_failed(
        self, broker: BrokerId, epoch: int, partitions: Sequence[TopicPartition]
    ) -> None:
        """A broker says that its logs of these are in a directory that has failed.

        That holds for the life in which it said so: it may have started again since, with a
        directory that works, and would then be kept out of every ISR for ever.
        """

        async def operation(office: Office) -> None:
            known = office.image.brokers.get(broker)
            if known is not None and known.epoch == epoch:
                office.failed |= {(broker, where) for where in partitions}
                await repair(office, self._unclean(office))

        self._schedule(operation)

    def broker_refused(self, broker: BrokerId, epoch: int) -> None:
        """Nobody listens where this broker should: its registration goes before its session."""
        self._schedule(lambda office: broker_life.bury(office, broker, epoch))

    def reread_configs(self) -> None:
        """Somebody else has changed settings in the store, perhaps."""
        self._schedule(config_changes.reread)

    def layers(self, broker: BrokerId | None = None) -> BrokerLayers:
        """The settings of a broker, this one by default, with what was altered since its start."""
        image, broker = self.image, self._broker if broker is None else broker
        return BrokerLayers(
            self._static, image.default_broker_config, image.broker_configs.get(broker, {})
        )

    def _schedule(self, operation: Callable[[Office], Awaitable[None]]) -> None:
        """Carry it out once it is its turn, if this broker is the controller then."""

        async def if_in_office() -> None:
            if self._holder is not None:
                await operation(self._holder)

        self._operations.schedule(if_in_office)

    async def _submit(self, operation: Callable[[Office], Awaitable[T]]) -> T:
        return await self._operations.submit(lambda: operation(self._office))

    def _unclean(self, office: Office) -> Unclean:
        """Whether a topic may have a leader that is not in sync."""

        def allowed(topic: str) -> bool:
            image = office.image
            layers = BrokerLayers(self._static, image.default_broker_config, {})
            given = image.topic_configs.get(topic, {})
            return effective_topic_config(given, layers).unclean_leader_election_enable

        return allowed


def _all_partitions(
    image: ClusterImage, changes: Mapping[TopicPartition, PartitionChange]
) -> Iterable[PartitionChange]:
    for topic in image.topics.values():
        for index, partition in topic.partitions.items():
            where = TopicPartition(topic.name, index)
            if partition.partition_epoch >= 0:
                yield changes.get(where) or PartitionChange(where, topic.id, partition)
