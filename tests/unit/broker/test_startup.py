"""The decision at startup: serve, refuse, or set logs aside."""

from pathlib import Path

import msgspec
import pytest

from penstock.broker.startup.decision import Refuse, Serve, StoredMetadata, decide, lost_replicas
from penstock.log.found import FoundDirectory, FoundLog
from penstock.log.meta_properties import MetaProperties
from penstock.metadata.image import ClusterImage, PartitionRegistration, Topic
from penstock.types import NO_UUID, BrokerId, TopicPartition, Uuid

HOME, A, B = Path("/home"), Path("/a"), Path("/b")
ID, ANOTHER_ID = Uuid(bytes(15) + b"1"), Uuid(bytes(15) + b"2")
ONE = BrokerId(1)


def topic(name: str, topic_id: Uuid = ID, partitions: int = 1) -> Topic:
    state = PartitionRegistration((ONE,), (ONE,), ONE, partition_epoch=0)
    return Topic(name, topic_id, dict.fromkeys(range(partitions), state))


def directory(
    path: Path,
    *logs: tuple[str, int, Uuid | None],
    cluster: str | None = "c",
    broker: int | None = 1,
    directory_id: str | None = None,
) -> FoundDirectory:
    return FoundDirectory(
        path,
        MetaProperties(broker, cluster, directory_id),
        tuple(
            FoundLog(path / f"{name}-{index}", TopicPartition(name, index), topic_id)
            for name, index, topic_id in logs
        ),
    )


def alone(
    *topics: Topic,
    cluster: str | None = "c",
    deleting: frozenset[str] = frozenset(),
    log_dirs: dict[str, str] | None = None,
) -> StoredMetadata:
    known = {each.name: each for each in topics}
    return StoredMetadata(
        "the metadata in /home/metadata.sqlite", True, cluster, known, deleting, log_dirs or {}
    )


def zookeeper(*topics: Topic, cluster: str | None = "c") -> StoredMetadata:
    return StoredMetadata("ZooKeeper at z:1", False, cluster, {each.name: each for each in topics})


NEW = FoundDirectory(A)
UNREADABLE = FoundDirectory(B, is_readable=False)

SERVED = {
    "nothing is there yet": ([NEW], alone(cluster=None), Serve(None, None)),
    "an empty directory beside one in use": (
        [directory(A, ("t", 0, ID)), FoundDirectory(B)],
        alone(topic("t")),
        Serve(ONE, "c"),
    ),
    "the metadata is lost, and so are all topics": (
        [directory(A)],
        alone(cluster=None),
        Serve(ONE, "c"),
    ),
    "all partitions are known": (
        [directory(A, ("t", 0, ID)), directory(B, ("t", 1, ID))],
        alone(topic("t", partitions=2)),
        Serve(ONE, "c"),
    ),
    "a log written before topics had ids": (
        [directory(A, ("t", 0, None))],
        alone(topic("t")),
        Serve(ONE, "c"),
    ),
    "a topic older than ids": (
        [directory(A, ("t", 0, ID))],
        alone(topic("t", NO_UUID)),
        Serve(ONE, "c"),
    ),
    "a partition whose log a crash took before it was made": (
        [directory(A, directory_id="x")],
        alone(topic("t"), log_dirs={"x": "/a"}),
        Serve(ONE, "c"),
    ),
    "a deletion that is pending": (
        [directory(A, ("t", 0, ID))],
        alone(topic("t"), deleting=frozenset({"t"})),
        Serve(ONE, "c"),
    ),
    "a deletion that is pending, its log gone already, and a directory that was taken out": (
        [directory(A, directory_id="x")],
        alone(topic("t"), deleting=frozenset({"t"}), log_dirs={"x": "/a", "y": "/b"}),
        Serve(ONE, "c"),
    ),
    "an empty directory was taken out": (
        [directory(A, ("t", 0, ID), directory_id="x")],
        alone(topic("t"), log_dirs={"x": "/a", "y": "/b"}),
        Serve(ONE, "c"),
    ),
    "a directory moved to another path": (
        [directory(B, ("t", 0, ID), directory_id="x")],
        alone(topic("t"), log_dirs={"x": "/a"}),
        Serve(ONE, "c"),
    ),
    "an adopted directory without an id, moved to another path": (
        [directory(B, ("t", 0, ID))],
        alone(topic("t"), log_dirs={"/a": "/a"}),
        Serve(ONE, "c"),
    ),
    "an adopted directory without an id lacks a partition": (
        [directory(A, ("t", 0, ID))],
        alone(topic("t", partitions=2), log_dirs={"/a": "/a"}),
        Serve(ONE, "c"),
    ),
    "a directory that cannot be read": (
        [directory(A, directory_id="x"), UNREADABLE],
        alone(topic("t"), log_dirs={"x": "/a", "y": "/b"}),
        Serve(ONE, "c"),
    ),
    "version 0 of meta.properties, written in steps": (
        [directory(A, broker=None, cluster=None)],
        alone(),
        Serve(None, None),
    ),
    "a broker comes back to its cluster with an empty disk": (
        [NEW],
        zookeeper(topic("t")),
        Serve(None, None),
    ),
    "a replica of a topic that the cluster may have deleted": (
        [directory(A, ("t", 0, ID))],
        zookeeper(),
        Serve(ONE, "c"),
    ),
    "a replica of a topic whose name was used again": (
        [directory(A, ("t", 0, ID), ("u", 0, ID))],
        zookeeper(topic("t", ANOTHER_ID), topic("u")),
        Serve(ONE, "c", (FoundLog(A / "t-0", TopicPartition("t", 0), ID),)),
    ),
    "two logs of one name, one of a deleted topic": (
        [directory(A, ("t", 0, ID)), directory(B, ("t", 0, ANOTHER_ID))],
        zookeeper(topic("t", ANOTHER_ID)),
        Serve(ONE, "c", (FoundLog(A / "t-0", TopicPartition("t", 0), ID),)),
    ),
}

ADOPT = "penstock log adopt --dir /home"
IMPORT = "penstock metadata import"

REFUSED = {
    "another process works there": (
        [msgspec.structs.replace(directory(A), is_locked=True)],
        alone(),
        ["/a is in use"],
    ),
    "a directory that is no partition's": (
        [msgspec.structs.replace(directory(A), others=("photos",))],
        alone(),
        ["/a/photos is not the directory of a partition"],
    ),
    "directories of two brokers": (
        [directory(A), directory(B, broker=2)],
        alone(),
        ["disagree on their broker.id: 1, 2"],
    ),
    "directories of two clusters": (
        [directory(A), directory(B, cluster="d")],
        alone(),
        ["disagree on their cluster.id: c, d"],
    ),
    "a directory of another cluster": (
        [directory(A)],
        alone(cluster="d"),
        ["/a belongs to cluster c", "/home/metadata.sqlite is of cluster d", "--dir"],
    ),
    "logs of another cluster": (
        [directory(A, ("t", 0, ID)), directory(B)],
        alone(cluster="d"),
        ["penstock metadata import --dir NEW FILE", "penstock log adopt --dir NEW /a registers"],
    ),
    "another ZooKeeper": (
        [directory(A)],
        zookeeper(cluster="d"),
        ["/a belongs to cluster c", "ZooKeeper at z:1 is of cluster d", "zookeeper.connect"],
    ),
    "started in another folder": (
        [directory(A, ("t", 0, ID))],
        alone(cluster=None),
        ["1 partition (t-0) is in /a", "does not know", "--dir that", IMPORT, f"{ADOPT} /a"],
    ),
    "metadata of before a topic was made": (
        [directory(A, ("t", 0, ID), *(("new", n, ID) for n in range(5)))],
        alone(topic("t")),
        ["5 partitions (new-0, new-1, new-2, ...) are in /a", IMPORT, ADOPT],
    ),
    "metadata of before a topic grew": (
        [directory(A, ("t", 0, ID), ("t", 1, ID))],
        alone(topic("t")),
        ["1 partition (t-1)", IMPORT, ADOPT],
    ),
    "metadata that knows another topic of that name": (
        [directory(A, ("t", 0, ID))],
        alone(topic("t", ANOTHER_ID)),
        ["1 partition (t-0)", IMPORT, ADOPT],
    ),
    "metadata that deletes another topic of that name": (
        [directory(A, ("t", 0, ID))],
        alone(topic("t", ANOTHER_ID), deleting=frozenset({"t"})),
        ["1 partition (t-0)", IMPORT, ADOPT],
    ),
    "a directory of Kafka's that was not adopted": (
        [directory(A, ("t", 0, ID), cluster=None, broker=None)],
        alone(cluster=None),
        [f"{ADOPT} /a"],
    ),
    "a ZooKeeper that has lost everything": (
        [directory(A, ("t", 0, ID))],
        zookeeper(cluster=None),
        ["1 partition (t-0)", "ZooKeeper at z:1 knows no cluster", "zookeeper.connect", ADOPT],
    ),
    "a directory that is not mounted": (
        [FoundDirectory(A)],
        alone(topic("t"), log_dirs={"x": "/a"}),
        ["1 partition (t-0) is in none", "/a", "mount it", "penstock log forget --dir /home /a"],
    ),
    "a directory that is no longer named": (
        [directory(A, ("t", 0, ID), directory_id="x")],
        alone(topic("t", partitions=2), log_dirs={"x": "/a", "y": "/b"}),
        ["1 partition (t-1) is in none", "and /b", "log.dirs"],
    ),
}


@pytest.mark.parametrize("case", SERVED)
def test_a_startup_that_loses_nothing_is_accepted(case: str) -> None:
    directories, store, outcome = SERVED[case]
    assert decide(directories, store, None, HOME) == outcome


@pytest.mark.parametrize("case", REFUSED)
def test_a_startup_that_could_lose_data_is_refused_in_one_sentence(case: str) -> None:
    directories, store, named = REFUSED[case]
    outcome = decide(directories, store, None, HOME)
    assert isinstance(outcome, Refuse)
    for words in named:
        assert words in outcome.why
    assert "\n" not in outcome.why


@pytest.mark.row("A146")
def test_broker_id_must_match_the_directories() -> None:
    found, store = [directory(A, broker=2)], alone()
    assert decide(found, store, BrokerId(2), HOME) == Serve(BrokerId(2), "c")
    outcome = decide(found, store, BrokerId(3), HOME)
    assert isinstance(outcome, Refuse)
    assert "broker.id is 3, but the log directories belong to broker 2" in outcome.why
    assert decide([NEW], store, BrokerId(3), HOME) == Serve(BrokerId(3), None)


def test_in_sync_replicas_without_a_log_are_reported() -> None:
    image = ClusterImage(topics={"t": topic("t", partitions=2)})
    held = {TopicPartition("t", 0)}
    assert lost_replicas(image, ONE, held) == [TopicPartition("t", 1)]
    assert lost_replicas(image, BrokerId(2), held) == []


def test_a_replica_that_never_had_a_log_has_not_lost_one() -> None:
    image = ClusterImage(topics={"t": topic("t", partitions=3)})
    created = {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert lost_replicas(image, ONE, {TopicPartition("t", 0)}, created) == [TopicPartition("t", 1)]
