"""Applies the controller's state changes to the replicas of this broker."""

import asyncio
import logging
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from contextlib import suppress

from penstock.broker.cluster import Cluster
from penstock.broker.coordination.coordinators import Coordinators
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.controller.state_change import PartitionChange, StateChange, StoppedReplicas
from penstock.errors import KafkaError, StorageError
from penstock.log.compaction.compactor import Compactor
from penstock.log.flush import OffLoop
from penstock.metadata.client_entity import ClientEntity
from penstock.metadata.image import ClusterImage, Configs
from penstock.metadata.records import NO_LEADER
from penstock.replication.errors import StaleState
from penstock.replication.fetchers import Fetchers
from penstock.replication.partition import Partition
from penstock.replication.partition_logs import needs_log
from penstock.replication.partitions import Partitions
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid

logger = logging.getLogger(__name__)
state_change = logging.getLogger("penstock.state_change")
"""Leadership changes, like Kafka's state.change.logger."""

PARTITIONS_PER_TURN = 5
LOGS_AT_A_TIME = 20
"""Logs created by one call of a thread that flushes need too. Each takes it a few milliseconds."""


class Turn:
    """Lets requests in after a few partitions, or after a millisecond: the rename of a deleted log
    may wait that long for the file system.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._partitions, self._began_ms = 0, self._clock.monotonic_ms()

    async def end_if_over(self) -> None:
        """Called after each partition."""
        self._partitions += 1
        is_late = self._clock.monotonic_ms() > self._began_ms
        if is_late or self._partitions >= PARTITIONS_PER_TURN:
            await asyncio.sleep(0)
            self._begin()


class LocalBroker:
    """Starts and stops replicas, makes them lead or follow, and applies settings to them."""

    def __init__(
        self,
        broker_id: BrokerId,
        cluster: Cluster,
        partitions: Partitions,
        fetchers: Fetchers,
        waiters: Waiters,
        compactor: Compactor,
        coordinators: Coordinators,
        clock: Clock,
        off_loop: OffLoop,
        on_brokers: Callable[[Collection[BrokerId]], object],
        on_client_configs: Callable[[Mapping[ClientEntity, Configs]], object],
    ) -> None:
        self._broker_id, self._cluster, self._partitions = broker_id, cluster, partitions
        self._fetchers, self._waiters, self._clock = fetchers, waiters, clock
        self._compactor, self._coordinators = compactor, coordinators
        self._off_loop = off_loop
        self._on_brokers = on_brokers
        """Called with the live brokers at each change."""
        self._on_client_configs = on_client_configs
        """Called with the settings of clients at each change."""
        self._unusable: dict[TopicPartition, int] = {}
        """Replicas without a usable log, with the leader epoch in which that was logged: the
        controller repeats its requests.
        """
        self._undeleted: set[TopicPartition] = set()
        """Replicas that could not be deleted, which was logged."""

    async def apply(self, change: StateChange) -> list[TopicPartition]:
        """Apply the change; returns the replicas whose log directory has failed."""
        # The image comes first: settings of new topics are read from it. Until the log exists,
        # clients get an error that makes them retry.
        self._cluster.image = change.image
        self._coordinators.image_changed()
        self._on_brokers(change.image.brokers)
        self._on_client_configs(change.image.client_configs)
        failed = []
        not_created: dict[TopicPartition, StorageError] = {}
        changes = [each for each in change.partitions if self._broker_id in each.state.replicas]
        turn = Turn(self._clock)
        for count, each in enumerate(changes):
            if count % LOGS_AT_A_TIME == 0:
                not_created |= await self._create_logs(changes[count : count + LOGS_AT_A_TIME])
            if not self._lead_or_follow(each, not_created.get(each.topic_partition)):
                failed.append(each.topic_partition)
            await turn.end_if_over()
        failed += await self._stop_all(
            [each for each in change.stopped if self._broker_id in each.replicas]
        )
        deleted = [
            each.topic_partition for each in change.stopped if is_deleted(each, change.image)
        ]
        if deleted:
            self._coordinators.deleted(deleted)
        if change.broker_configs:
            self._configure(self._partitions)
        elif change.topic_configs:
            changed = set(change.topic_configs)
            self._configure(p for p in self._partitions if p.topic_partition.topic in changed)
        return failed

    def held(self, topics: Container[str] | None = None) -> dict[TopicPartition, Uuid]:
        """The logs on this broker, of all topics or some, with their topic ids (`NO_UUID` if there
        is none).
        """
        store = self._partitions.store
        return {
            topic_partition: store.topic_ids.get(topic_partition, NO_UUID)
            for topic_partition in store.logs
            if topics is None or topic_partition.topic in topics
        }

    async def set_aside(self, strays: Mapping[TopicPartition, str]) -> None:
        """Stop replicas that are not assigned to this broker, and keep their logs as strays."""
        turn = Turn(self._clock)
        for topic_partition, why in strays.items():
            self._coordinators.not_led(topic_partition)
            self._fetchers.stop(topic_partition)
            try:
                self._partitions.set_aside(topic_partition, why)
            except StorageError as error:
                logger.warning("cannot set the stray replica %s aside: %s", topic_partition, error)
            self._waiters.changed(topic_partition)
            await turn.end_if_over()

    def failed(self) -> list[TopicPartition]:
        """The replicas whose log directory has failed."""
        return [
            each.topic_partition
            for each in self._partitions
            if each.log.log_dir.failure is not None
        ]

    async def _create_logs(
        self, changes: Iterable[PartitionChange]
    ) -> Mapping[TopicPartition, StorageError]:
        """Create the logs of new replicas off the loop; see `LogStore.create_off_loop`."""
        store = self._partitions.store
        new = {
            each.topic_partition: each.topic_id
            for each in changes
            if needs_log(store, each.topic_partition, is_new=each.is_new_on(self._broker_id))
        }
        if not new:
            return {}
        return await store.create_off_loop(new, self._clock.now_ms(), self._off_loop)

    def _lead_or_follow(
        self, change: PartitionChange, not_created: StorageError | None = None
    ) -> bool:
        """Make the replica lead or follow; returns False if it has no usable log.

        `not_created`: why its log could not be created.
        """
        topic_partition, state = change.topic_partition, change.state
        before = self._partitions.find(*topic_partition)
        try:
            if not_created is not None:
                raise not_created
            partition = self._partitions.create(
                *topic_partition,
                change.topic_id,
                self._clock.now_ms(),
                is_new=change.is_new_on(self._broker_id),
            )
            if before is not None and partition is not before:  # the topic was created again
                self._coordinators.not_led(topic_partition)
                self._fetchers.stop(topic_partition)
            if partition.log.log_dir.failure is not None:
                raise partition.log.log_dir.failure
            if state.leader == self._broker_id:
                self._fetchers.stop(topic_partition)
                was = partition.leader_epoch
                partition.lead(state.leader_epoch, state.isr, state.replicas, state.partition_epoch)
                self._coordinators.led(partition)
            else:
                was = partition.leader_epoch
                self._coordinators.not_led(topic_partition)
                self._follow(partition, change)
            if was != state.leader_epoch:
                self._log_change(change)
        except StaleState as error:
            logger.info("%s", error)
        except (KafkaError, StorageError) as error:
            if self._unusable.get(topic_partition) != state.leader_epoch:
                self._unusable[topic_partition] = state.leader_epoch
                logger.error("replica %s has no usable log: %s", topic_partition, error)
            self._coordinators.not_led(topic_partition)
            self._fetchers.stop(topic_partition)
            return False
        self._unusable.pop(topic_partition, None)
        self._waiters.changed(topic_partition)
        return True

    def _log_change(self, change: PartitionChange) -> None:
        state = change.state
        role = (
            "this broker leads"
            if state.leader == self._broker_id
            else "nobody leads"
            if state.leader == NO_LEADER
            else f"broker {state.leader} leads"
        )
        state_change.info(
            "%s-%d: %s in epoch %d, ISR %s",
            *change.topic_partition,
            role,
            state.leader_epoch,
            list(state.isr),
        )

    def _follow(self, partition: Partition, change: PartitionChange) -> None:
        state = change.state
        is_new = partition.follow(
            state.leader, state.leader_epoch, state.replicas, state.partition_epoch
        )
        if state.leader == NO_LEADER:
            self._fetchers.stop(change.topic_partition)
        elif is_new:
            self._fetchers.follow(partition)

    async def _stop_all(self, all_stopped: Collection[StoppedReplicas]) -> list[TopicPartition]:
        """Stop replicas; returns those whose deletion failed, or may be undone by a crash."""
        store, failed = self._partitions.store, set()
        found = [each.topic_partition for each in all_stopped if each.topic_partition in store.logs]
        turn = Turn(self._clock)
        for each in all_stopped:
            if not self._stop(each):
                failed.add(each.topic_partition)
            await turn.end_if_over()
        undone = await store.sync_deletions(self._off_loop)
        self._forget_cleaned([each for each in found if each not in store.logs])
        return [
            each.topic_partition
            for each in all_stopped
            if each.topic_partition in failed or (each.delete and each.topic_partition in undone)
        ]

    def _stop(self, stopped: StoppedReplicas) -> bool:
        """Stop a replica; returns False if its log could not be deleted."""
        topic_partition = stopped.topic_partition
        self._coordinators.not_led(topic_partition)
        self._fetchers.stop(topic_partition)
        if not stopped.delete:
            self._resign(topic_partition)
        # After a start a log may exist without its partition, with a deletion still pending.
        store = self._partitions.store
        known = store.topic_ids.get(topic_partition, NO_UUID)
        try:
            if stopped.delete and topic_partition in store.logs:
                if NO_UUID in {known, stopped.topic_id} or known == stopped.topic_id:
                    self._partitions.drop(*topic_partition, sync=False)
                else:
                    self._partitions.set_aside(
                        topic_partition, "belongs to another topic than the deleted one"
                    )
            elif stopped.delete and not store.is_complete:
                raise StorageError("it may be in a directory that is offline")
        except StorageError as error:
            level = logging.DEBUG if topic_partition in self._undeleted else logging.WARNING
            logger.log(level, "cannot delete %s: %s", topic_partition, error)
            self._undeleted.add(topic_partition)
            return False
        finally:
            self._waiters.changed(topic_partition)
        self._undeleted.discard(topic_partition)
        return True

    def _forget_cleaned(self, deleted: Collection[TopicPartition]) -> None:
        for log_dir in self._partitions.store.online if deleted else ():
            with suppress(StorageError):  # repeated when the log is created again
                self._compactor.forget(log_dir, deleted)

    def _resign(self, topic_partition: TopicPartition) -> None:
        """Keep the log without leading or following: the broker stops, or loses the replica."""
        partition = self._partitions.find(*topic_partition)
        if partition is not None:
            partition.follow(
                NO_LEADER, partition.leader_epoch, partition.replicas, partition.partition_epoch
            )

    def _configure(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            partition.configure(self._cluster.topic_config(partition.topic_partition.topic))


def is_deleted(stopped: StoppedReplicas, image: ClusterImage) -> bool:
    """Whether the partition is deleted, and not only some of its replicas.

    A large topic is deleted by several requests: some of its partitions may still be in the image.
    """
    topic = image.topics.get(stopped.topic_partition.topic)
    if topic is None:
        return True
    if stopped.topic_id == NO_UUID:
        return False
    return topic.id != stopped.topic_id or stopped.topic_partition.partition not in topic.partitions
