"""Carries out the controller's requests to this broker, one after the other."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from penstock.broker.cluster import Cluster
from penstock.broker.peers import control_changes
from penstock.broker.replicas.local import LocalBroker
from penstock.broker.replicas.strays import of_replaced_topics, strays, unknown_topics
from penstock.controller.epoch import NotController
from penstock.controller.state_change import PartitionChange, StateChange
from penstock.errors import ErrorCode
from penstock.metadata.errors import StoreError
from penstock.metadata.image import ClusterImage, Configs, ImageDelta
from penstock.metadata.records import NO_LEADER
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

ReadConfigs = Callable[[Iterable[str]], Awaitable[Mapping[str, Configs]]]
"""Reads the settings of these topics from the store."""

ExistingTopics = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Returns which of these topics exist in the store, readable or not."""

logger = logging.getLogger(__name__)


class ControlPlane:
    """Runs one request at a time, whichever controller sent it: the last requests of an old
    controller must not mix with the first of a new one.

    Requests wait until this broker is registered, although it listens earlier. Earlier requests may
    be meant for its previous process, whose registration lasts until its session ends. A machine
    that lost power would then lead with what is left of its logs, and its followers would truncate.

    A controller whose connection breaks sends the request again over a new one. The first copy may
    still arrive seconds later, so requests on an older connection are refused: StopReplica names no
    topic id, and would delete the log of a topic that was created again since.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        local: LocalBroker,
        read_configs: ReadConfigs,
        new_topics: Callable[[Collection[str]], object],
        existing_topics: ExistingTopics,
        check_topics: Callable[[], object],
    ) -> None:
        self._broker_id, self._cluster = broker_id, cluster
        self._partitions, self._local, self._read_configs = partitions, local, read_configs
        self._new_topics, self._existing_topics = new_topics, existing_topics
        """Called with topics whose settings this broker has yet to read."""
        self._check_topics = check_topics
        """Schedules `set_unknown_aside` for when the store can be read."""
        self._configs_read: dict[str, Uuid] = {}
        """Topics whose settings were read for LeaderAndIsr, with their ids. A later UpdateMetadata
        adds the topics to the image.
        """
        self._turn = asyncio.Lock()
        self._is_registered = asyncio.Event()
        self._broker_epoch = control_changes.UNKNOWN_EPOCH
        self._sender = (-1, 0)
        """The latest controller epoch of a request, and the number of its connection
        (`Peer.connection`).
        """

    def registered(self, broker_epoch: int) -> None:
        """Accept requests for the epoch of this broker's latest registration."""
        self._broker_epoch = broker_epoch
        self._is_registered.set()

    @asynccontextmanager
    async def _checked(
        self,
        request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
        connection: int,
    ) -> AsyncIterator[None]:
        """Run the block as the request's turn; raises if its controller epoch or broker epoch has
        passed, or if its controller has opened a newer connection.
        """
        await self._is_registered.wait()
        async with self._turn:
            control_changes.check_epochs(request, self._cluster.image, self._broker_epoch)
            sender = (request.controller_epoch, connection)
            if sender < self._sender:
                raise control_changes.StaleControllerEpoch(
                    f"controller {request.controller_id} has opened another connection since"
                )
            self._sender = sender
            yield

    async def leader_and_isr(
        self, request: LeaderAndIsrRequest, connection: int = 0
    ) -> dict[Uuid, dict[int, ErrorCode]]:
        """Lead or follow each partition; returns error codes by topic id and partition."""
        async with self._checked(request, connection):
            image = self._cluster.image
            changes = control_changes.replicas_of(request)
            outdated = {each.topic_partition for each in changes if self._is_outdated(each)}
            current = tuple(each for each in changes if each.topic_partition not in outdated)
            unread = control_changes.new_topics(current, image, self._configs_read)
            try:
                configs = await self._read_configs(unread) if unread else {}
            except StoreError:
                # The store is unreachable. Topics with known settings do not wait for it.
                known = tuple(each for each in current if each.topic_partition.topic not in unread)
                await self._apply(request, known, {})
                raise
            failed = set(await self._apply(request, current, configs))
            self._configs_read |= {
                each.topic_partition.topic: each.topic_id
                for each in current
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

    async def _apply(
        self,
        request: LeaderAndIsrRequest,
        partitions: tuple[PartitionChange, ...],
        configs: Mapping[str, Configs],
    ) -> list[TopicPartition]:
        delta = replace(control_changes.controller_of(request), topic_configs=configs)
        image = self._cluster.image.apply(delta)
        change = StateChange(image=image, partitions=partitions, topic_configs=tuple(configs))
        return await self._local.apply(change)

    def _is_outdated(self, change: PartitionChange) -> bool:
        """Whether the leader epoch is not newer than the known one.

        Exception: a controller that could not write "no leader" to the store announced it in the
        epoch of the last leader. That leader resumes if the next controller, which reads the store,
        says so.
        """
        known, state = self._partitions.find(*change.topic_partition), change.state
        if known is None or known.topic_id != change.topic_id:
            return False
        if state.leader_epoch == known.leader_epoch and known.leader == NO_LEADER:
            return state.leader == NO_LEADER
        return state.leader_epoch <= known.leader_epoch

    def _has_failed(self, topic_partition: TopicPartition) -> bool:
        known = self._partitions.find(*topic_partition)
        return known is not None and known.log.log_dir.failure is not None

    async def update_metadata(self, request: UpdateMetadataRequest, connection: int = 0) -> None:
        async with self._checked(request, connection):
            before = self._cluster.image.topics
            change = control_changes.metadata_change(
                request, self._cluster.image, self._configs_read
            )
            names = {each.topic_name for each in request.topic_states}
            for name in names:
                self._configs_read.pop(name, None)
            await self._local.apply(change)
            new = {
                each.topic_name
                for each in request.topic_states
                if each.topic_name not in before or before[each.topic_name].id != each.topic_id
            }
            if new:
                replaced = of_replaced_topics(self._local.held(new), change.image, new)
                await self._local.set_aside(replaced)
            unread = (names & change.image.topics.keys()) - change.image.topic_configs.keys()
            if unread:
                self._new_topics(unread)

    async def stop_replica(
        self, request: StopReplicaRequest, connection: int = 0
    ) -> dict[TopicPartition, ErrorCode]:
        async with self._checked(request, connection):
            image = self._cluster.image
            stopped = control_changes.stopped_by(request, self._broker_id)
            outdated = {
                each.topic_partition
                for each in stopped
                if each.leader_epoch >= 0
                and (known := self._partitions.find(*each.topic_partition)) is not None
                and each.leader_epoch < known.leader_epoch
            }
            wanted = tuple(each for each in stopped if each.topic_partition not in outdated)
            delta = control_changes.controller_of(request)
            failed = await self._local.apply(StateChange(image=image.apply(delta), stopped=wanted))
        return {
            each.topic_partition: ErrorCode.FENCED_LEADER_EPOCH
            if each.topic_partition in outdated
            else ErrorCode.KAFKA_STORAGE_ERROR
            if each.topic_partition in failed
            else ErrorCode.NONE
            for each in stopped
        }

    async def apply_own(self, change: StateChange) -> list[TopicPartition]:
        """Apply a change by the controller in this process; returns replicas in failed log
        directories.

        Refused once a newer controller is known: the old controller's image would replace a newer
        one.
        """
        async with self._turn:
            known = self._cluster.image.controller_epoch
            if change.image.controller_epoch < known:
                raise NotController(f"a controller of epoch {known} is known")
            self._configs_read.clear()  # this image has the settings of all its topics
            failed = await self._local.apply(change)
            if self._broker_id in change.joined:  # a joining broker reports all its failed replicas
                failed += self._local.failed()
                await self._set_strays_aside()
            return failed

    async def _set_strays_aside(self) -> None:
        """After the controller's full set: set replicas aside that it did not name."""
        held = self._local.held()
        unknown = unknown_topics(held, self._cluster.image)
        try:
            existing = await self._existing_topics(unknown) if unknown else ()
        except StoreError as error:
            logger.info("keeping the logs of unknown topics for now: %s", error)
            existing = unknown
            self._check_topics()
        await self._local.set_aside(strays(held, self._cluster.image, self._broker_id, existing))

    async def set_unknown_aside(self) -> None:
        """Set logs of topics aside that are neither in the image nor in the store.

        A full set does not name deleted topics. If this broker's image still had the topic when the
        full set arrived, its replicas here were not counted as strays.
        """
        async with self._turn:
            held = self._local.held()
            unknown = unknown_topics(held, self._cluster.image)
            if unknown:
                existing = await self._existing_topics(unknown)
                logs = {each: id_ for each, id_ in held.items() if each.topic in unknown}
                found = strays(logs, self._cluster.image, self._broker_id, existing)
                await self._local.set_aside(found)

    async def apply_from_store(self, delta: ImageDelta, read_at: ClusterImage) -> bool:
        """Apply a change that this broker read from the store itself, when its image was `read_at`.

        Topics that the controller has changed since are left out: they may have been deleted and
        created again. Returns False if there were any.
        """
        async with self._turn:
            current = control_changes.still_current(delta, read_at, self._cluster.image)
            change = StateChange(
                image=self._cluster.image.apply(current),
                stopped=control_changes.deleted_partitions(current, self._cluster.image),
                topic_configs=tuple(current.topic_configs),
                broker_configs=bool(current.broker_configs)
                or current.default_broker_config is not None,
            )
            await self._local.apply(change)
            return current == delta
