"""Carrying out what the controller of the cluster says. Its requests come one after the other."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager

from penstock.broker.cluster import Cluster
from penstock.broker.peers import received
from penstock.broker.replicas.local import LocalBroker
from penstock.broker.replicas.strays import strays, unknown_topics
from penstock.controller.epoch import NotController
from penstock.controller.state_change import PartitionChange, StateChange
from penstock.errors import ErrorCode
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.refusal import StoreError
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

ReadConfigs = Callable[[Iterable[str]], Awaitable[Mapping[str, Configs]]]
"""The settings of these topics, as the store has them."""

TopicsThere = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Those of these topics that the store has, readable or not."""

logger = logging.getLogger(__name__)


class Orders:
    """One at a time, whoever says them: an old controller's last words and a new one's first must
    not mix.

    Before this broker is registered they wait. They may be meant for its former life, whose
    registration lasts until its session ends: a machine that lost power would lead with what is
    left of its logs, and the others would cut theirs.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        local: LocalBroker,
        read_configs: ReadConfigs,
        new_topics: Callable[[Collection[str]], object],
        topics_there: TopicsThere,
    ) -> None:
        self._broker_id, self._cluster = broker_id, cluster
        self._partitions, self._local, self._read_configs = partitions, local, read_configs
        self._new_topics, self._topics_there = new_topics, topics_there
        """Hears of topics whose settings this broker has yet to read."""
        self._ahead: dict[str, Uuid] = {}
        """Topics whose settings were read when LeaderAndIsr named them: UpdateMetadata, which puts
        a topic into the image, comes after it.
        """
        self._turn = asyncio.Lock()
        self._is_registered = asyncio.Event()
        self._broker_epoch = received.UNKNOWN_EPOCH

    def registered(self, broker_epoch: int) -> None:
        """Take the epoch of this broker's newest registration."""
        self._broker_epoch = broker_epoch
        self._is_registered.set()

    @asynccontextmanager
    async def _checked(
        self, request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
    ) -> AsyncIterator[None]:
        """The request's turn, unless it comes from another time."""
        await self._is_registered.wait()
        async with self._turn:
            received.check_epochs(request, self._cluster.image, self._broker_epoch)
            yield

    async def lead_and_follow(
        self, request: LeaderAndIsrRequest
    ) -> dict[Uuid, dict[int, ErrorCode]]:
        """How each replica took it: by its topic's id and its index."""
        async with self._checked(request):
            image = self._cluster.image
            changes = received.replicas_of(request)
            outdated = {each.topic_partition for each in changes if self._is_outdated(each)}
            news = tuple(each for each in changes if each.topic_partition not in outdated)
            unread = received.new_topics(news, image, self._ahead)
            try:
                configs = await self._read_configs(unread) if unread else {}
            except StoreError:
                # The store is away. Topics whose settings are known do not wait for it.
                known = tuple(each for each in news if each.topic_partition.topic not in unread)
                await self._take(request, known, {})
                raise
            failed = set(await self._take(request, news, configs))
            self._ahead |= {
                each.topic_partition.topic: each.topic_id
                for each in news
                if each.topic_partition.topic in unread
            }
            failed |= {
                each.topic_partition for each in changes if self._has_failed(each.topic_partition)
            }
            if not changes:
                await self._set_strays_aside()
        answers: dict[Uuid, dict[int, ErrorCode]] = {}
        for each in changes:
            code = ErrorCode.NONE
            if each.topic_partition in failed:
                code = ErrorCode.KAFKA_STORAGE_ERROR
            elif each.topic_partition in outdated:
                code = ErrorCode.STALE_CONTROLLER_EPOCH
            answers.setdefault(each.topic_id, {})[each.topic_partition.partition] = code
        return answers

    async def _take(
        self,
        request: LeaderAndIsrRequest,
        news: tuple[PartitionChange, ...],
        configs: Mapping[str, Configs],
    ) -> list[TopicPartition]:
        delta = replace_office(received.office_of(request), configs)
        image = self._cluster.image.apply(delta)
        change = StateChange(image=image, partitions=news, topic_configs=tuple(configs))
        return await self._local.apply(change)

    def _is_outdated(self, change: PartitionChange) -> bool:
        """Known already, or older than what is known."""
        known = self._partitions.find(*change.topic_partition)
        return (
            known is not None
            and known.topic_id == change.topic_id
            and change.state.leader_epoch <= known.leader_epoch
        )

    def _has_failed(self, topic_partition: TopicPartition) -> bool:
        known = self._partitions.find(*topic_partition)
        return known is not None and known.log.log_dir.failure is not None

    async def update_metadata(self, request: UpdateMetadataRequest) -> None:
        async with self._checked(request):
            change = received.metadata_change(request, self._cluster.image, self._ahead)
            names = {each.topic_name for each in request.topic_states}
            for name in names:
                self._ahead.pop(name, None)
            await self._local.apply(change)
            unread = (names & change.image.topics.keys()) - change.image.topic_configs.keys()
            if unread:
                self._new_topics(unread)

    async def stop_replicas(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        async with self._checked(request):
            image = self._cluster.image
            stopped = received.stopped_by(request, self._broker_id)
            outdated = {
                each.topic_partition
                for each in stopped
                if each.leader_epoch >= 0
                and (known := self._partitions.find(*each.topic_partition)) is not None
                and each.leader_epoch < known.leader_epoch
            }
            wanted = tuple(each for each in stopped if each.topic_partition not in outdated)
            delta = received.office_of(request)
            failed = await self._local.apply(StateChange(image=image.apply(delta), stopped=wanted))
        return {
            each.topic_partition: ErrorCode.FENCED_LEADER_EPOCH
            if each.topic_partition in outdated
            else ErrorCode.KAFKA_STORAGE_ERROR
            if each.topic_partition in failed
            else ErrorCode.NONE
            for each in stopped
        }

    async def carry_out(self, change: StateChange) -> list[TopicPartition]:
        """What the controller in this process says, refused like any other's once it was outrun.

        The replicas come back whose log directory has failed.
        """
        async with self._turn:
            known = self._cluster.image.controller_epoch
            if change.image.controller_epoch < known:
                raise NotController(f"the controller of epoch {known} has been heard of")
            self._ahead.clear()  # its image has the settings of all topics that are in it
            failed = await self._local.apply(change)
            if self._broker_id in change.joined:  # asked of all that it has, as others are
                failed += self._local.failed()
                await self._set_strays_aside()
            return failed

    async def _set_strays_aside(self) -> None:
        """The controller has told of everything: what it did not name is not this broker's."""
        held = self._local.held()
        unknown = unknown_topics(held, self._cluster.image)
        try:
            there = await self._topics_there(unknown) if unknown else ()
        except StoreError as error:
            logger.info("logs of unknown topics stay for now: %s", error)
            there = unknown
        await self._local.set_aside(strays(held, self._cluster.image, self._broker_id, there))

    async def heard(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        """What this broker has read in the store by itself, when its image was `read_at`.

        Of topics about which the controller has said more since, that holds and not what was
        read: they may have been deleted and made anew. False if there were any.
        """
        async with self._turn:
            current = received.still_current(delta, read_at, self._cluster.image)
            change = StateChange(
                image=self._cluster.image.apply(current),
                stopped=received.forgotten(current, self._cluster.image),
                topic_configs=tuple(current.topic_configs),
                broker_configs=bool(current.broker_configs)
                or current.default_broker_config is not None,
            )
            await self._local.apply(change)
            return current == delta


def replace_office(office: ImageDelta, configs: Mapping[str, Configs]) -> ImageDelta:
    return ImageDelta(
        controller=office.controller,
        controller_epoch=office.controller_epoch,
        topic_configs=configs,
    )
