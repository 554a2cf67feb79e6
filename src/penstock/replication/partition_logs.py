"""Finds or creates the log of a partition in the store, and detects the log of another topic."""

from penstock.log.partition_log import PartitionLog
from penstock.log.store import LogStore, PartitionOffline
from penstock.types import NO_UUID, TopicPartition, Uuid, uuid_text


def why_stray(
    store: LogStore, topic_partition: TopicPartition, topic_id: Uuid, *, is_new: bool
) -> str | None:
    """Why the log of this name belongs to another topic; None if it does not.

    `is_new`: the topic was just created, and this broker has no such partition.
    """
    if topic_partition not in store.logs and topic_partition not in store.future_logs:
        return None
    known = store.topic_ids.get(topic_partition)
    if known is None:
        return "existed before its topic was created" if is_new else None
    if NO_UUID in {known, topic_id} or known == topic_id:
        return None
    return f"has the topic id {uuid_text(known)}, but its topic now has {uuid_text(topic_id)}"


def needs_log(store: LogStore, topic_partition: TopicPartition, *, is_new: bool) -> bool:
    """Whether `log_of` will create the partition's log."""
    return (
        topic_partition not in store.logs
        and topic_partition not in store.future_logs
        and (is_new or len(store.online) == len(store.dirs))
    )


def log_of(
    store: LogStore, topic_partition: TopicPartition, topic_id: Uuid, now_ms: int, *, is_new: bool
) -> PartitionLog:
    """The partition's log, created unless it exists.

    The log of a partition that is not new may be in an offline directory: then it is refused.
    """
    log = store.get(topic_partition)
    if log is None:
        if not is_new and len(store.online) < len(store.dirs):
            raise PartitionOffline(f"{topic_partition} may be in a directory that is offline")
        return store.create(topic_partition, topic_id, now_ms)
    if topic_partition not in store.topic_ids:
        store.name_topic(log, topic_id)
    return log
