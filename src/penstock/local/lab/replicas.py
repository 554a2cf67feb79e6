"""Two replicas of a partition, moved step by step, with the real logs, leaders and followers.

What a cluster does within milliseconds happens here in visible steps, with any truncation rule,
including the one that Kafka had before leader epochs and that our brokers do not have.
"""

from pathlib import Path

from msgspec import Struct

from penstock.config.topic import TopicConfig
from penstock.errors import KafkaError
from penstock.local.lab.narration import ReplicaSnapshot
from penstock.log.disk import DiskFiles
from penstock.log.epochs import LeaderEpochs
from penstock.log.loading import load_logs
from penstock.log.store import LogStore
from penstock.record.batch import batches, read_header
from penstock.record.build import build_batch
from penstock.record.record import Record, records
from penstock.replication import read_fencing
from penstock.replication.environment import Environment
from penstock.replication.follower import (
    FollowerLogs,
    NextStep,
    move_into_leader_range,
    next_fetch,
    process_partition_data,
)
from penstock.replication.isr import FollowerFetch
from penstock.replication.isr_proposals import note_fetch
from penstock.replication.partition import Partition
from penstock.replication.partitions import Partitions
from penstock.replication.truncation import (
    EpochEnd,
    OffsetTruncation,
    TruncationRule,
    truncation_by_epoch,
)
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.fetch import EpochEndOffset, FetchPartition, PartitionData

TOPIC_PARTITION = TopicPartition("lab", 0)
TOPIC_ID = Uuid(bytes(15) + b"1")
REPLICAS = (0, 1)
NOTHING_KNOWN = EpochEnd(-1, -1)


class Truncation(Struct, frozen=True):
    """How followers truncate their logs, and whether their fetches carry the last epoch."""

    name: str
    rule: TruncationRule
    by_epochs: bool = False


def cut_at_high_watermark(
    _leader: EpochEnd, _epochs: LeaderEpochs, _end_offset: int, high_watermark: int
) -> OffsetTruncation:
    """The rule before KIP-101: a new follower truncates to its high watermark."""
    return OffsetTruncation(high_watermark, is_complete=True)


BY_HIGH_WATERMARK = Truncation("truncation by high watermark", cut_at_high_watermark)
BY_EPOCH = Truncation("truncation by leader epoch", truncation_by_epoch, by_epochs=True)


class HandMovedReplicas:
    """Brokers 0 and 1. At first broker 0 leads in epoch 0, and both are in sync."""

    def __init__(self, folder: Path, truncation: Truncation) -> None:
        self._folder, self._truncation = folder, truncation
        self._partitions = {broker: self._opened(broker) for broker in REPLICAS}
        self._alive = set(REPLICAS)
        self._epoch = -1
        self._isr: tuple[int, ...] = REPLICAS
        self._response: PartitionData | None = None
        self._request: FetchPartition | None = None
        self.elect(0, REPLICAS)
        self._partition_of(1).follow(0, self._epoch, REPLICAS, self._epoch)

    def _opened(self, broker: int) -> tuple[LogStore, Partition]:
        path = self._folder / f"broker-{broker}"
        path.mkdir(parents=True, exist_ok=True)
        store = LogStore(DiskFiles(), [path / "logs"], lambda _: TopicConfig(), boot_id="lab")
        load_logs(store, 0)
        environment = Environment(monotonic_ms=lambda: 0, propose=lambda _: None)
        partitions = Partitions(BrokerId(broker), store, environment)
        return store, partitions.create(*TOPIC_PARTITION, TOPIC_ID, 0)

    def _partition_of(self, broker: int) -> Partition:
        return self._partitions[broker][1]

    # Actions.

    def elect(self, broker: int, isr: tuple[int, ...]) -> None:
        """Make a live broker the leader in a new epoch, as the controller would."""
        self._epoch, self._isr = self._epoch + 1, isr
        self._partition_of(broker).lead(self._epoch, isr, REPLICAS, self._epoch)

    def follow(self, broker: int, leader: int) -> None:
        """Begin to follow; with epochs, first request the end of the last epoch from the leader."""
        partition = self._partition_of(broker)
        partition.follow(leader, self._epoch, REPLICAS, self._epoch)
        log = partition.log
        answer = NOTHING_KNOWN
        if self._truncation.by_epochs:
            if leader not in self._alive or log.epochs.latest is None:
                return  # without a leader, nothing is truncated on a guess
            theirs = self._partition_of(leader).log
            answer = EpochEnd(*theirs.epochs.end_offset_for(log.epochs.latest, theirs.end_offset))
        cut = self._truncation.rule(answer, log.epochs, log.end_offset, log.high_watermark)
        self._logs(broker).truncate(TOPIC_PARTITION, cut.offset)

    def restart(self, broker: int) -> None:
        """Shut down cleanly and restart: the log is complete, and the HW is on disk."""
        self._partitions[broker][0].close()
        self._partitions[broker] = self._opened(broker)
        self._alive.add(broker)

    def lose_power(self, broker: int, flushed: int) -> None:
        """Lose the unflushed records in the page cache; the broker is down."""
        self._logs(broker).truncate(TOPIC_PARTITION, flushed)
        self._alive.discard(broker)

    def die(self, broker: int) -> None:
        self._alive.discard(broker)

    def write(self, broker: int, value: str) -> None:
        batch = build_batch([Record(0, 0, None, value.encode(), [])])
        self._partition_of(broker).append(batch, read_header(batch), 1, 0)

    def send_fetch(self, broker: int) -> None:
        """A follower's fetch reaches its leader, and acknowledges the records before its offset."""
        partition = self._partition_of(broker)
        request = next_fetch(partition, 1 << 20)
        if not self._truncation.by_epochs:
            request = FetchPartition(
                partition=request.partition,
                current_leader_epoch=request.current_leader_epoch,
                fetch_offset=request.fetch_offset,
                log_start_offset=request.log_start_offset,
                partition_max_bytes=request.partition_max_bytes,
            )
        self._request = request
        self._response = self._answer(self._partition_of(partition.leader), broker, request)

    def _answer(self, leader: Partition, follower: int, request: FetchPartition) -> PartitionData:
        try:
            diverging = read_fencing.diverging_epoch(
                leader, request.last_fetched_epoch, request.fetch_offset
            )
            if diverging is not None:
                return PartitionData(
                    diverging_epoch=EpochEndOffset(
                        epoch=diverging.epoch, end_offset=diverging.end_offset
                    )
                )
            found = leader.log.read(request.fetch_offset, 1 << 20, up_to=leader.log.end_offset)
            note_fetch(
                leader, FollowerFetch(follower, request.fetch_offset, request.log_start_offset)
            )
        except KafkaError as error:
            return PartitionData(error_code=error.code)
        return PartitionData(
            high_watermark=leader.log.high_watermark,
            log_start_offset=leader.log.log_start_offset,
            records=b"" if found is None else found.read(),
        )

    def receive_fetch(self, broker: int) -> None:
        """The leader's response reaches the follower."""
        assert self._request is not None
        assert self._response is not None
        partition, logs, rule = (
            self._partition_of(broker),
            self._logs(broker),
            self._truncation.rule,
        )
        if (
            process_partition_data(partition, self._request, self._response, logs, 0, rule)
            is NextStep.FIND_RANGE
        ):
            theirs = self._partition_of(partition.leader).log
            move_into_leader_range(partition, theirs.log_start_offset, theirs.end_offset, logs, 0)

    def fetch(self, broker: int) -> None:
        self.send_fetch(broker)
        self.receive_fetch(broker)

    def _logs(self, broker: int) -> FollowerLogs:
        return FollowerLogs(self._partitions[broker][0], lambda _log, _offset: None)

    # Observations.

    def values(self, broker: int) -> list[str]:
        """Each record as `value@epoch`, in offset order."""
        log = self._partition_of(broker).log
        found: list[str] = []
        while (part := log.read(len(found), 1 << 20, up_to=log.end_offset)) is not None:
            data = part.read()
            for position, header in batches(data):
                found += [
                    f"{(record.value or b'').decode()}@{header.leader_epoch}"
                    for record in records(data[position:], header, 1 << 20)
                ]
        return found

    def replicas(self) -> list[ReplicaSnapshot]:
        found = []
        for broker in REPLICAS:
            partition = self._partition_of(broker)
            role = "leader" if partition.leads else "follower"
            if broker not in self._alive:
                role = "down"
            log = partition.log
            found.append(
                ReplicaSnapshot(
                    broker,
                    role,
                    log.end_offset,
                    log.high_watermark,
                    broker in self._isr,
                    tuple(self.values(broker)),
                )
            )
        return found

    def close(self) -> None:
        for store, _ in self._partitions.values():
            store.close()
