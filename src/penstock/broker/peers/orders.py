"""Carrying out what the controller of the cluster says. Its requests come one after the other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from penstock.broker.cluster import Cluster
from penstock.broker.local import LocalBroker
from penstock.broker.peers import received
from penstock.controller.change import PartitionChange, StateChange
from penstock.controller.term import NotController
from penstock.errors import ErrorCode
from penstock.metadata.image import Configs, ImageDelta
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

ReadConfigs = Callable[[Iterable[str]], Awaitable[Mapping[str, Configs]]]
"""The settings of these topics, as the store has them."""


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
    ) -> None:
        self._broker_id, self._cluster = broker_id, cluster
        self._partitions, self._local, self._read_configs = partitions, local, read_configs
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
            outdated = {each.where for each in changes if self._is_outdated(each)}
            news = tuple(each for each in changes if each.where not in outdated)
            unknown = {each.where.topic for each in news} - image.topic_configs.keys()
            configs = await self._read_configs(unknown) if unknown else {}
            delta = replace_office(received.office_of(request), configs)
            change = StateChange(image=self._cluster.image.apply(delta), partitions=news)
            failed = set(await self._local.apply(change))
            failed |= {each.where for each in changes if self._has_failed(each.where)}
        answers: dict[Uuid, dict[int, ErrorCode]] = {}
        for each in changes:
            code = ErrorCode.NONE
            if each.where in failed:
                code = ErrorCode.KAFKA_STORAGE_ERROR
            elif each.where in outdated:
                code = ErrorCode.STALE_CONTROLLER_EPOCH
            answers.setdefault(each.topic_id, {})[each.where.partition] = code
        return answers

    def _is_outdated(self, change: PartitionChange) -> bool:
        """Known already, or older than what is known."""
        known = self._partitions.find(*change.where)
        return (
            known is not None
            and known.topic_id == change.topic_id
            and change.state.leader_epoch <= known.leader_epoch
        )

    def _has_failed(self, where: TopicPartition) -> bool:
        known = self._partitions.find(*where)
        return known is not None and known.log.log_dir.failure is not None

    async def update_metadata(self, request: UpdateMetadataRequest) -> None:
        async with self._checked(request):
            await self._local.apply(received.metadata_change(request, self._cluster.image))

    async def stop_replicas(self, request: StopReplicaRequest) -> dict[TopicPartition, ErrorCode]:
        async with self._checked(request):
            image = self._cluster.image
            stopped = received.stopped_by(request, self._broker_id)
            outdated = {
                each.where
                for each in stopped
                if each.leader_epoch >= 0
                and (known := self._partitions.find(*each.where)) is not None
                and each.leader_epoch < known.leader_epoch
            }
            wanted = tuple(each for each in stopped if each.where not in outdated)
            delta = received.office_of(request)
            failed = await self._local.apply(StateChange(image=image.apply(delta), stopped=wanted))
        return {
            each.where: ErrorCode.FENCED_LEADER_EPOCH
            if each.where in outdated
            else ErrorCode.KAFKA_STORAGE_ERROR
            if each.where in failed
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
            failed = await self._local.apply(change)
            if self._broker_id in change.joined:  # asked of all that it has, as others are
                failed += self._local.failed()
            return failed

    async def heard(self, delta: ImageDelta, changed: StateChange | None = None) -> None:
        """What this broker has read in the store by itself: settings, and who is controller."""
        async with self._turn:
            image = self._cluster.image.apply(delta)
            change = StateChange(image=image) if changed is None else changed
            await self._local.apply(replace(change, image=image))


def replace_office(office: ImageDelta, configs: Mapping[str, Configs]) -> ImageDelta:
    return ImageDelta(
        controller=office.controller,
        controller_epoch=office.controller_epoch,
        topic_configs=configs,
    )
