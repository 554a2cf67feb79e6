"""Checks whether this replica may serve a read of a client or a fetch of a follower.

They raise the error of the response, as `Partition.check_leader` does for all requests.
"""

from collections.abc import Iterator

from penstock.errors import ErrorCode, KafkaError
from penstock.log.lookup import OffsetOutOfRange
from penstock.replication.errors import NotLeader, UnknownLeaderEpoch
from penstock.replication.partition import Partition
from penstock.replication.truncation import EpochEnd, diverging


class OffsetNotAvailable(KafkaError):
    """A new leader does not know yet how far its predecessor had committed (KIP-207)."""

    code = ErrorCode.OFFSET_NOT_AVAILABLE


def check_readable(partition: Partition, known_epoch: int) -> None:
    """Raise if the client knows another epoch, or this broker neither leads nor follows."""
    partition.check_epoch(known_epoch)
    if partition.leader_epoch < 0:
        raise NotLeader(f"{partition.topic_partition} has no leader that this broker knows of")


def check_follower(partition: Partition, replica: int, known_epoch: int, broker_epoch: int) -> None:
    """Raise if the broker has no replica of the partition, though one may be about to be assigned.

    Also raise for a request that a broker sent before it registered again: what it had then may
    be lost.
    """
    state = partition.followers.get(replica)
    if state is None:
        text = f"broker {replica} has no replica of {partition.topic_partition}"
        raise NotLeader(text) if known_epoch < 0 else UnknownLeaderEpoch(text)
    if 0 <= broker_epoch < state.broker_epoch:
        raise NotLeader(f"broker {replica} has registered again since epoch {broker_epoch}")


def check_latest_known(partition: Partition, end: int) -> None:
    """Raise if `end` must not be returned as the log's end yet (KIP-207).

    While the high watermark is that of a former epoch, more may be committed, and may have been
    read.
    """
    high_watermark = partition.log.high_watermark
    if end < partition.epoch_start_offset and high_watermark < partition.epoch_start_offset:
        raise OffsetNotAvailable(
            f"{partition.topic_partition} has committed up to {high_watermark}, "
            f"its epoch begins at {partition.epoch_start_offset}"
        )


def diverging_epoch(
    partition: Partition, last_fetched_epoch: int, fetch_offset: int
) -> EpochEnd | None:
    """Where the fetching replica's log diverges, if its fetch has a last epoch (KIP-595)."""
    if last_fetched_epoch < 0:
        return None
    log = partition.log
    found = diverging(log.epochs, log.end_offset, last_fetched_epoch, fetch_offset)
    unknown = found is not None and found.epoch < 0
    if unknown or fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(fetch_offset, log.log_start_offset, log.end_offset)
    return found


def visible_end(partition: Partition, *, read_committed: bool) -> int:
    """The offset before which a consumer may read."""
    log = partition.log
    return log.last_stable_offset if read_committed else log.high_watermark


def readable_followers(partition: Partition, offset: int) -> Iterator[tuple[int, int, int]]:
    """In-sync followers that have `offset`: broker, end offset, ms since it was caught up."""
    now_ms = partition.environment.monotonic_ms()
    for replica in partition.in_sync.committed:
        state = partition.followers.get(replica)
        if state is not None and state.log_start_offset <= offset <= state.end_offset:
            yield replica, state.end_offset, now_ms - state.caught_up_ms
