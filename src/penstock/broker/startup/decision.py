"""The decision at a broker's start: serve, refuse, or set stray logs aside first. Pure.

The log directories name their cluster, and the store of a single broker names its directories. If
they do not belong together, a broker that served anyway would treat acknowledged records as those
of deleted topics, or begin empty logs beside them.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import join, quote

from msgspec import Struct

from penstock.counted import counted
from penstock.log.found import FoundDirectory, FoundLog
from penstock.log.meta_properties import MetaProperties
from penstock.metadata.image import ClusterImage, PartitionRegistration, Topic
from penstock.types import NO_UUID, BrokerId, TopicPartition

NAMED = 3
"""The most partitions that a message names."""


class StoredMetadata(Struct, frozen=True):
    """The cluster as the metadata store describes it."""

    name: str
    """The store's file or ZooKeeper's address, for messages."""
    is_standalone: bool
    """Whether the store is embedded: everything in it belongs to this broker."""
    cluster_id: str | None = None
    topics: Mapping[str, Topic] = {}
    """Includes topics whose deletion is pending."""
    deleting: frozenset[str] = frozenset()
    log_dirs: Mapping[str, str] = {}
    """For a single broker: the paths of the directories it has used or adopted, by `directory.id`;
    an adopted directory without an id has its path as key.
    """


class Serve(Struct, frozen=True):
    """Start as this broker; `broker_id` is None if it has no id yet."""

    broker_id: BrokerId | None
    cluster_id: str | None
    """The cluster id in the directories."""
    stray: tuple[FoundLog, ...] = ()
    """Logs to set aside before loading."""


class Refuse(Struct, frozen=True):
    """Do not start. Nothing was changed."""

    why: str


def decide(
    directories: Sequence[FoundDirectory],
    store: StoredMetadata,
    configured_id: BrokerId | None,
    home: Path,
) -> Serve | Refuse:
    """`configured_id` is `broker.id`; `home` is the data directory, used in messages."""
    identities = [each.identity for each in directories if each.identity is not None]
    refusal = (
        _locked(directories)
        or _foreign_entries(directories)
        or _contradiction(identities, configured_id)
        or _another_cluster(directories, store)
        or _unknown(directories, store, home)
        or _missing(directories, store, home)
        or _elsewhere(directories, store, home)
    )
    if refusal is not None:
        return Refuse(refusal)
    former = next((each.broker_id for each in identities if each.broker_id is not None), None)
    return Serve(
        configured_id if former is None else BrokerId(former),
        next((each.cluster_id for each in identities if each.cluster_id), None),
        tuple(each for each in _logs(directories) if _is_replaced(each, store)),
    )


def decide_workers(
    workers: Sequence[Sequence[FoundDirectory]],
    store: StoredMetadata,
    configured_id: BrokerId | None,
    home: Path,
    *,
    is_resizing: bool = False,
) -> Refuse | None:
    """Like `decide`, for all workers of a machine before they start: checks what no single one can.

    `configured_id` is that of the first. While the number of workers changes, logs move before the
    metadata.
    """
    directories = [each for folders in workers for each in folders]
    refusal = (
        _foreign_entries(directories)
        or _another_cluster(directories, store)
        or _unknown(directories, store, home)
        or _missing(directories, store, home)
    )
    if not is_resizing:
        refusal = (
            refusal or _elsewhere(directories, store, home) or _older(directories, store, home)
        )
    for index, folders in enumerate(workers):
        identities = [each.identity for each in folders if each.identity is not None]
        refusal = refusal or _contradiction(identities, None if index else configured_id)
    return None if refusal is None else Refuse(refusal)


def _locked(directories: Iterable[FoundDirectory]) -> str | None:
    for each in directories:
        if each.is_locked:
            return (
                f"log directory {each.path} is in use by another process: stop that broker, "
                "or use other log.dirs"
            )
    return None


def _foreign_entries(directories: Iterable[FoundDirectory]) -> str | None:
    for each in directories:
        for name in each.others:
            return (
                f"{each.path / name} is not the directory of a partition: nothing else may be here"
            )
    return None


def _contradiction(
    identities: Sequence[MetaProperties], configured_id: BrokerId | None
) -> str | None:
    brokers = {each.broker_id for each in identities} - {None}
    clusters = {each.cluster_id for each in identities} - {None}
    for name, values in (("broker.id", brokers), ("cluster.id", clusters)):
        if len(values) > 1:
            listed = ", ".join(sorted(map(str, values)))
            return f"log.dirs: the directories disagree on their {name}: {listed}"
    if configured_id is not None and brokers - {configured_id}:
        return (
            f"broker.id is {configured_id}, but the log directories belong to broker "
            f"{brokers.pop()}: use that number, or other log.dirs"
        )
    return None


def _another_cluster(directories: Sequence[FoundDirectory], store: StoredMetadata) -> str | None:
    for each in directories:
        stated = None if each.identity is None else each.identity.cluster_id
        if None not in {stated, store.cluster_id} and stated != store.cluster_id:
            right = "--dir" if store.is_standalone else "zookeeper.connect"
            return (
                f"log directory {each.path} belongs to cluster {stated}, but {store.name} is of "
                f"cluster {store.cluster_id}: use the {right} of that cluster, or other log.dirs"
                f"{_without_its_metadata(directories)}"
            )
    return None


def _without_its_metadata(directories: Sequence[FoundDirectory]) -> str:
    """Advice for lost cluster metadata; empty if there are no logs to save."""
    at = join(sorted(str(each.path) for each in directories if each.logs))
    if not at:
        return ""
    return (
        ". If its metadata is lost, begin a new data directory: penstock metadata import --dir NEW "
        f"FILE restores an export of it, penstock log adopt --dir NEW {at} registers the topics "
        "that the logs are of"
    )


def _unknown(
    directories: Sequence[FoundDirectory], store: StoredMetadata, home: Path
) -> str | None:
    """Refuse logs that the store does not know. In a cluster the controller finds the strays."""
    logs, quoted = list(_logs(directories)), quote(str(home))
    if store.is_standalone:
        unknown = [each for each in logs if not _is_known(each, store)]
        if not unknown:
            return None
        at = join(sorted({str(each.path.parent) for each in unknown}))
        return (
            f"log.dirs: {_listed([each.partition for each in unknown])} in {at}, which "
            f"{store.name} does not know: start with the --dir that this broker had before, "
            f"restore its metadata (penstock metadata import --dir {quoted} FILE), register the "
            f"topics (penstock log adopt --dir {quoted} {at}), or move these directories away"
        )
    if store.cluster_id is None and logs:
        return (
            f"log.dirs: {_listed([each.partition for each in logs])}, but {store.name} knows no "
            "cluster: use the zookeeper.connect that this broker had before, or other log.dirs; "
            f"penstock log adopt --dir {quoted} takes the topics over for a broker without "
            "ZooKeeper, and penstock metadata import restores such a broker's metadata"
        )
    return None


def _missing(
    directories: Sequence[FoundDirectory], store: StoredMetadata, home: Path
) -> str | None:
    """Refuse if a known directory is missing: its partitions would begin empty."""
    if not store.is_standalone or not all(each.is_readable for each in directories):
        return None  # missing partitions may be in the unreadable directory, and are offline
    present = {each.identity.directory_id for each in directories if each.identity is not None}
    present |= {str(each.path) for each in directories}
    lost = [path for each, path in store.log_dirs.items() if each not in present]
    found = {each.partition for each in _logs(directories)}
    missing = [
        topic_partition
        for topic in store.topics.values()
        for index, partition in topic.partitions.items()
        if partition.partition_epoch >= 0
        and topic.name not in store.deleting
        and (topic_partition := TopicPartition(topic.name, index)) not in found
    ]
    if not lost or not missing:
        return None
    return (
        f"log.dirs: {_listed(missing)} in none of them, and {', '.join(lost)}, which this broker "
        "has used or adopted, is not there: mount it, or name it in log.dirs; if it is lost for "
        "good, "
        f"penstock log forget --dir {quote(str(home))} {join(lost)} lets its partitions begin empty"
    )


def _elsewhere(
    directories: Sequence[FoundDirectory], store: StoredMetadata, home: Path
) -> str | None:
    """Refuse if logs are with other workers than the metadata says, as after restoring an old
    backup: the partitions would begin empty where the metadata expects them.
    """
    if not store.is_standalone or not all(each.is_readable for each in directories):
        return None
    holders: dict[TopicPartition, set[int]] = {}
    at: dict[TopicPartition, Path] = {}
    for each in directories:
        broker = None if each.identity is None else each.identity.broker_id
        if broker is None:
            continue
        for log in each.logs:
            holders.setdefault(log.partition, set()).add(broker)
            at[log.partition] = each.path
    moved = [
        each
        for each, brokers in holders.items()
        if (known := _partition(each, store)) is not None and brokers.isdisjoint(known.replicas)
    ]
    if not moved:
        return None
    where = " ".join(sorted({str(at[each]) for each in moved}))
    return (
        f"log.dirs: {_listed(moved)} in {where}, where {store.name} has no replica of it: it is "
        f"{_older_than_logs(store, home, directories)}"
    )


def _older(directories: Sequence[FoundDirectory], store: StoredMetadata, home: Path) -> str | None:
    """Refuse metadata older than the logs: its ISR may name a replica that lacks records, and as
    the leader it would make the others truncate theirs.
    """
    newer = {
        log.partition
        for log in _logs(directories)
        if (known := _partition(log.partition, store)) is not None
        and log.last_epoch > known.leader_epoch
    }
    if not newer:
        return None
    return (
        f"log.dirs: {_listed(sorted(newer))} in a later leader epoch than {store.name} knows: it "
        f"is {_older_than_logs(store, home, directories)}"
    )


def _older_than_logs(
    store: StoredMetadata, home: Path, directories: Iterable[FoundDirectory]
) -> str:
    at, quoted = join(sorted(str(each.path) for each in directories if each.logs)), quote(str(home))
    return (
        "older than the logs. Restore the latest metadata (penstock metadata import --dir "
        f"{quoted} FILE); without it, move {store.name.removeprefix('the metadata in ')} away and "
        f"register the topics where they are (penstock log adopt --dir {quoted} {at})"
    )


def _partition(each: TopicPartition, store: StoredMetadata) -> PartitionRegistration | None:
    """The partition, if it exists and is not being deleted."""
    topic = store.topics.get(each.topic)
    return (
        None
        if topic is None or each.topic in store.deleting
        else topic.partitions.get(each.partition)
    )


def _logs(directories: Iterable[FoundDirectory]) -> Iterable[FoundLog]:
    return (log for each in directories for log in each.logs)


def _is_known(log: FoundLog, store: StoredMetadata) -> bool:
    topic = store.topics.get(log.partition.topic)
    return (
        topic is not None
        and log.partition.partition in topic.partitions
        and not _is_replaced(log, store)
    )


def _is_replaced(log: FoundLog, store: StoredMetadata) -> bool:
    """Whether a new topic has the name of the log's topic."""
    topic = store.topics.get(log.partition.topic)
    return (
        topic is not None
        and NO_UUID not in {topic.id, log.topic_id}
        and log.topic_id not in {None, topic.id}
    )


def lost_replicas(
    image: ClusterImage,
    broker: BrokerId,
    held: Container[TopicPartition],
    created: Container[TopicPartition] | None = None,
) -> list[TopicPartition]:
    """Partitions whose ISR names this broker although it has no log of them.

    Its disk was replaced or is not mounted. The broker must not lead with an empty log before
    another in-sync replica is back. `created` has the partitions that ever had a log, if that is
    known: a stop in the middle of a topic's creation leaves partitions without one.
    """
    return [
        topic_partition
        for topic in image.topics.values()
        for index, partition in topic.partitions.items()
        if broker in partition.isr
        and (topic_partition := TopicPartition(topic.name, index)) not in held
        and (created is None or topic_partition in created)
    ]


def _listed(partitions: Sequence[TopicPartition]) -> str:
    """For example `2 partitions (a-0, b-1) are`."""
    names = ", ".join(map(str, sorted(partitions)[:NAMED]))
    more = ", ..." if len(partitions) > NAMED else ""
    verb = "is" if len(partitions) == 1 else "are"
    return f"{counted(len(partitions), 'partition')} ({names}{more}) {verb}"
