"""Control requests count only in the current broker epoch and from the current controller."""

import asyncio
from collections.abc import Collection, Container, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from penstock.broker.cluster import Cluster
from penstock.broker.peers.control_changes import StaleControllerEpoch
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.topic_watch import TopicWatch
from penstock.clock import SystemClock
from penstock.controller.broker_registration import prepare_tree
from penstock.controller.control_requests import LEADER_DURING_DELETE
from penstock.controller.controlled_shutdown import StaleBrokerEpoch
from penstock.controller.epoch import NotController
from penstock.controller.state_change import StateChange
from penstock.metadata import paths
from penstock.metadata.embedded import EmbeddedStore
from penstock.metadata.errors import NotConnected, StoreUnavailable
from penstock.metadata.image import ClusterImage, Configs, ImageDelta, PartitionRegistration, Topic
from penstock.metadata.tree import Tree
from penstock.replication.partitions import Partitions
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from penstock.wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

FAILED = TopicPartition("t", 0)


class Local:
    """A broker that only records changes; one of its directories has failed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.changes: list[StateChange] = []
        self.logs: dict[TopicPartition, Uuid] = {}
        self.aside: list[TopicPartition] = []

    async def apply(self, change: StateChange) -> list[TopicPartition]:
        self.changes.append(change)
        self._cluster.image = change.image
        return []

    def failed(self) -> list[TopicPartition]:
        return [FAILED]

    def held(self, topics: Container[str] | None = None) -> dict[TopicPartition, Uuid]:
        return {at: id_ for at, id_ in self.logs.items() if topics is None or at.topic in topics}

    async def set_aside(self, strays: Mapping[TopicPartition, str]) -> None:
        self.aside += strays


class Settings:
    """The settings in the store, by topic; `away` while the store cannot be reached."""

    def __init__(self, **topics: Configs) -> None:
        self.topics, self.reads, self.wanted = dict(topics), 0, set[str]()
        self.away = False
        self.checks = 0

    def check(self) -> None:
        self.checks += 1

    async def read(self, names: Iterable[str]) -> Mapping[str, Configs]:
        self.reads += 1
        if self.away:
            raise NotConnected("/")
        return {name: self.topics.get(name, {}) for name in names}

    def read_soon(self, names: Collection[str]) -> None:
        self.wanted |= set(names)

    async def there(self, names: Collection[str]) -> Collection[str]:
        if self.away:
            raise NotConnected("/")
        return self.topics.keys() & names


class NoPartitions:
    def find(self, _topic: str, _index: int) -> None:
        return None


def with_settings(
    settings: Settings, partitions: object = None
) -> tuple[ControlPlane, Cluster, Local]:
    """A broker that knows topic t and its settings."""
    image = ClusterImage().apply(
        ImageDelta(
            controller=BrokerId(1),
            controller_epoch=1,
            topics={"t": Topic("t", OLD, {0: IMAGE_STATE})},
            topic_configs={"t": {"retention.ms": "1000"}},
        )
    )
    cluster = Cluster(BrokerId(0), {}, image)
    local = Local(cluster)
    control_plane = ControlPlane(
        BrokerId(0),
        cluster,
        cast("Partitions", partitions or NoPartitions()),
        cast("Any", local),
        settings.read,
        settings.read_soon,
        settings.there,
        settings.check,
    )
    control_plane.registered(1)
    return control_plane, cluster, local


def leads(*topics: tuple[str, Uuid], epoch: int = 0, leader: int = 0) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=0, leader=leader, leader_epoch=epoch, isr=[0], replicas=[0]
    )
    return LeaderAndIsrRequest(
        controller_id=1,
        controller_epoch=1,
        broker_epoch=1,
        topic_states=[
            LeaderAndIsrTopicState(topic_name=name, topic_id=id_, partition_states=[state])
            for name, id_ in topics
        ],
    )


def update_metadata_for(topic_id: Uuid, leader: int = 0) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(partition_index=0, leader=leader, isr=[0], replicas=[0])
    topic = UpdateMetadataTopicState(topic_name="t", topic_id=topic_id, partition_states=[state])
    return UpdateMetadataRequest(
        controller_id=1, controller_epoch=1, broker_epoch=1, topic_states=[topic]
    )


OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)
IMAGE_STATE = PartitionRegistration((BrokerId(0),))


@pytest.mark.parametrize("joined", [False, True])
def test_a_topic_created_again_does_not_inherit_settings(joined: bool) -> None:
    """Whether LeaderAndIsr comes first or, for a broker that has just joined, UpdateMetadata."""

    async def main() -> None:
        settings = Settings(t={"segment.bytes": "2000"})
        control_plane, cluster, local = with_settings(settings)
        if joined:
            await control_plane.update_metadata(update_metadata_for(NEW))
            assert "t" not in cluster.image.topic_configs
            assert settings.wanted == {"t"}, "a broker without a replica tells of them as well"
        await control_plane.leader_and_isr(leads(("t", NEW)))
        assert local.changes[-1].topic_configs == ("t",)
        await control_plane.update_metadata(update_metadata_for(NEW))
        assert cluster.image.topic_configs == {"t": {"segment.bytes": "2000"}}
        assert settings.reads == 1
        await control_plane.update_metadata(update_metadata_for(NEW, leader=LEADER_DURING_DELETE))
        assert cluster.image.topic_configs == {}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("known", "reported", "is_applied"),
    [
        ((3, -1), (3, 0), True),
        ((3, -1), (3, -1), False),
        ((3, -1), (2, 0), False),
        ((3, 1), (3, 0), False),
        ((3, 1), (4, 0), True),
    ],
)
def test_a_known_leader_epoch_is_applied_again_only_if_it_had_no_leader(
    known: tuple[int, int], reported: tuple[int, int], is_applied: bool
) -> None:
    """A controller that could not write a leaderless state has a successor that does not know of
    it.
    """

    class OnePartition:
        def find(self, _topic: str, _index: int) -> object:
            log = SimpleNamespace(log_dir=SimpleNamespace(failure=None))
            leader_epoch, leader = known
            return SimpleNamespace(topic_id=OLD, leader_epoch=leader_epoch, leader=leader, log=log)

    async def main() -> None:
        control_plane, _, local = with_settings(Settings(), OnePartition())
        await control_plane.leader_and_isr(leads(("t", OLD), epoch=reported[0], leader=reported[1]))
        assert bool(local.changes[-1].partitions) is is_applied

    asyncio.run(main())


def test_settings_are_read_once_per_topic() -> None:
    async def main() -> None:
        settings = Settings()
        control_plane, cluster, _ = with_settings(settings)
        await control_plane.leader_and_isr(leads(("t", OLD)))
        await control_plane.update_metadata(update_metadata_for(OLD))
        assert (settings.reads, settings.wanted) == (0, set())
        assert cluster.image.topic_configs == {"t": {"retention.ms": "1000"}}

    asyncio.run(main())


def test_without_the_store_only_topics_with_unknown_settings_wait() -> None:
    async def main() -> None:
        settings = Settings(new={"retention.ms": "7"})
        control_plane, cluster, local = with_settings(settings)
        settings.away = True
        with pytest.raises(StoreUnavailable):
            await control_plane.leader_and_isr(leads(("t", OLD), ("new", NEW)))
        assert [each.topic_partition.topic for each in local.changes[-1].partitions] == ["t"]
        settings.away = False
        await control_plane.leader_and_isr(leads(("t", OLD), ("new", NEW)))
        assert [each.topic_partition.topic for each in local.changes[-1].partitions] == ["t", "new"]
        assert cluster.image.topic_configs["new"] == {"retention.ms": "7"}

    asyncio.run(main())


def test_settings_read_before_a_topic_was_created_again_are_ignored() -> None:
    async def main() -> None:
        control_plane, cluster, _ = with_settings(Settings(t={"segment.bytes": "2000"}))
        read_at = cluster.image
        stale = ImageDelta(
            topics={"t": None},
            topic_configs={"t": {"retention.ms": "1"}},
            group_configs={"g": {"consumer.session.timeout.ms": "50000"}},
        )
        await control_plane.leader_and_isr(leads(("t", NEW)))
        await control_plane.update_metadata(update_metadata_for(NEW))
        assert not await control_plane.apply_from_store(stale, read_at)
        assert cluster.image.topics["t"].id == NEW
        assert cluster.image.topic_configs == {"t": {"segment.bytes": "2000"}}
        assert set(cluster.image.group_configs) == {"g"}

    asyncio.run(main())


def test_topics_deleted_without_notice_are_removed() -> None:
    """As after a broker hung past its session; the coordinators are notified too."""

    async def main() -> None:
        tree = Tree.in_memory(SystemClock())
        store = EmbeddedStore(tree, asyncio.get_running_loop().call_soon)
        await prepare_tree(store)
        control_plane, cluster, local = with_settings(Settings())
        more = {name: Topic(name, OLD, {0: IMAGE_STATE}) for name in ("kept", "going")}
        cluster.image = cluster.image.apply(ImageDelta(topics=more))
        await store.create(paths.topic("kept"))
        await store.create(paths.topic("going"))
        await store.create(paths.deleted_topic("going"))
        watch = TopicWatch(
            store,
            lambda: cluster.image,
            control_plane.apply_from_store,
            control_plane.set_unknown_aside,
        )
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(watch.run())
            watch.check()
            async with asyncio.timeout(5):
                while not local.changes:
                    await asyncio.sleep(0)
            running.cancel()
        assert set(cluster.image.topics) == {"kept"}
        assert cluster.image.topic_configs == {}
        assert {each.topic_partition.topic for each in local.changes[-1].stopped} == {"t", "going"}
        await store.close()
        tree.close()

    asyncio.run(main())


def made(controller_epoch: int = 1) -> tuple[ControlPlane, Local]:
    image = ClusterImage().apply(
        ImageDelta(controller=BrokerId(1), controller_epoch=controller_epoch)
    )
    cluster = Cluster(BrokerId(0), {}, image)
    local = Local(cluster)
    partitions = cast("Partitions", None)
    unused = cast("Any", None)
    return ControlPlane(
        BrokerId(0), cluster, partitions, cast("Any", local), unused, unused, unused, unused
    ), local


def update(broker_epoch: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=1, broker_epoch=broker_epoch)


@pytest.mark.parametrize(("broker_epoch", "is_applied"), [(5, False), (7, True)])
def test_requests_wait_until_the_broker_is_registered(broker_epoch: int, is_applied: bool) -> None:
    """They may be meant for the broker's former process, whose session has not ended yet."""

    async def main() -> None:
        control_plane, local = made()
        async with asyncio.TaskGroup() as tasks:
            updating = tasks.create_task(is_accepted(control_plane, broker_epoch))
            for _ in range(5):
                await asyncio.sleep(0)
            assert not updating.done()
            assert local.changes == []
            control_plane.registered(7)
        assert updating.result() is is_applied
        assert len(local.changes) == is_applied

    async def is_accepted(control_plane: ControlPlane, epoch: int) -> bool:
        try:
            await control_plane.update_metadata(update(epoch))
        except StaleBrokerEpoch:
            return False
        return True

    asyncio.run(main())


def deletion() -> StopReplicaRequest:
    state = StopReplicaPartitionState(partition_index=0, leader_epoch=-2, delete_partition=True)
    topic = StopReplicaTopicState(topic_name="t", partition_states=[state])
    return StopReplicaRequest(
        controller_id=1, controller_epoch=1, broker_epoch=1, topic_states=[topic]
    )


def test_a_late_copy_from_a_closed_connection_is_refused() -> None:
    """The controller had given the connection up and sent the request again over another one."""

    async def main() -> None:
        control_plane, _, local = with_settings(Settings())
        former, latest = 7, 8
        await control_plane.stop_replica(deletion(), latest)
        await control_plane.leader_and_isr(leads(("t", NEW)), latest)
        await control_plane.update_metadata(update_metadata_for(NEW), latest)
        applied = len(local.changes)
        deleted = update_metadata_for(OLD, leader=LEADER_DURING_DELETE)
        for late in (
            control_plane.stop_replica(deletion(), former),
            control_plane.leader_and_isr(leads(("t", OLD)), former),
            control_plane.update_metadata(deleted, former),
        ):
            with pytest.raises(StaleControllerEpoch):
                await late
        assert len(local.changes) == applied
        # The next controller may use a connection that it opened before.
        await control_plane.update_metadata(
            replace(update_metadata_for(NEW), controller_epoch=2), former
        )
        assert len(local.changes) == applied + 1

    asyncio.run(main())


@pytest.mark.row("A089")
def test_a_former_controller_is_refused_on_its_own_broker_too() -> None:
    async def main() -> None:
        control_plane, local = made(controller_epoch=5)
        known = ClusterImage().apply(ImageDelta(controller_epoch=5))
        await control_plane.apply_own(StateChange(image=known))
        older = ClusterImage().apply(ImageDelta(controller_epoch=4))
        with pytest.raises(NotController):
            await control_plane.apply_own(StateChange(image=older))
        assert [each.image.controller_epoch for each in local.changes] == [5]

    asyncio.run(main())


def test_the_controllers_own_broker_reports_failed_replicas_too() -> None:
    async def main() -> None:
        control_plane, _ = made()
        image = ClusterImage().apply(ImageDelta(controller_epoch=1))
        assert await control_plane.apply_own(StateChange(image=image)) == []
        joined = StateChange(image=image, joined=frozenset({BrokerId(0)}))
        assert await control_plane.apply_own(joined) == [FAILED]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("away", "aside"), [(False, ["deleted-0", "moved-0"]), (True, ["moved-0"])]
)
def test_replicas_missing_from_a_full_set_are_set_aside(away: bool, aside: list[str]) -> None:
    """Replicas of unknown topics are too, unless the store has the topics or cannot be reached."""

    async def main() -> None:
        settings = Settings(malformed={})
        control_plane, cluster, local = with_settings(settings)
        elsewhere = PartitionRegistration((BrokerId(1),), partition_epoch=0)
        topics = {"moved": Topic("moved", OLD, {0: elsewhere})}
        cluster.image = cluster.image.apply(ImageDelta(topics=topics))
        names = ("t", "moved", "deleted", "malformed")
        local.logs = {TopicPartition(name, 0): OLD for name in names}
        await control_plane.leader_and_isr(leads(("t", OLD)))
        assert local.aside == [], "more may follow"
        settings.away = away
        await control_plane.leader_and_isr(leads())
        assert sorted(map(str, local.aside)) == aside
        assert settings.checks == away, "the unknown topics are looked up again"

    asyncio.run(main())


def test_logs_of_topics_found_deleted_after_a_full_set_are_set_aside() -> None:
    async def main() -> None:
        settings = Settings(created={})
        control_plane, _, local = with_settings(settings)
        local.logs = {TopicPartition(name, 0): OLD for name in ("t", "deleted", "created")}
        settings.away = True
        with pytest.raises(StoreUnavailable):
            await control_plane.set_unknown_aside()
        assert local.aside == []
        settings.away = False
        await control_plane.set_unknown_aside()
        assert list(map(str, local.aside)) == ["deleted-0"]

    asyncio.run(main())


@pytest.mark.parametrize(("topic_id", "aside"), [(OLD, []), (NEW, ["t-0"])])
def test_the_log_of_a_deleted_topic_whose_name_is_reused_is_set_aside(
    topic_id: Uuid, aside: list[str]
) -> None:
    """This broker has no replica of the new topic, so it receives no LeaderAndIsr."""

    async def main() -> None:
        control_plane, _, local = with_settings(Settings())
        local.logs = {TopicPartition("t", 0): OLD}
        await control_plane.update_metadata(update_metadata_for(topic_id, leader=1))
        assert list(map(str, local.aside)) == aside

    asyncio.run(main())


def test_the_controllers_own_broker_sets_strays_aside() -> None:
    async def main() -> None:
        control_plane, cluster, local = with_settings(Settings())
        local.logs = {TopicPartition("deleted", 0): OLD}
        await control_plane.apply_own(StateChange(image=cluster.image))
        assert local.aside == []
        joined = frozenset({BrokerId(0)})
        await control_plane.apply_own(StateChange(image=cluster.image, joined=joined))
        assert list(map(str, local.aside)) == ["deleted-0"]

    asyncio.run(main())
