"""One partition on this broker: who leads it, which replicas are in sync, what is committed."""

from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, KafkaError
from penstock.log.append import Appended
from penstock.log.partition_log import PartitionLog
from penstock.record.batch import BatchHeader
from penstock.record.compression import Codec
from penstock.record.validate import BatchRules
from penstock.types import BrokerId, TopicPartition, Uuid


class NotLeader(KafkaError):
    """Another broker leads this partition, or none does."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class FencedLeaderEpoch(KafkaError):
    """The client knows an older leader: it must ask for metadata."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(KafkaError):
    """The client knows a newer leader than this broker does."""

    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class NotEnoughReplicas(KafkaError):
    """Fewer replicas are in sync than `min.insync.replicas` asks for."""

    code = ErrorCode.NOT_ENOUGH_REPLICAS


class Partition:
    """A replica on this broker and, where it leads, the state of the others.

    The high watermark is the smallest end offset among the in-sync replicas: with this broker
    alone in sync, whatever is appended is committed at once.
    """

    def __init__(
        self,
        broker_id: BrokerId,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        log: PartitionLog,
    ) -> None:
        self._broker_id = broker_id
        self.topic_partition, self.topic_id, self.log = topic_partition, topic_id, log
        self.leader: int = -1
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = (broker_id,)
        self.leads = False
        self.records_in = self.bytes_in = self.bytes_out = 0
        self.configure(log.config)

    def configure(self, config: TopicConfig) -> None:
        """Take new topic settings; they hold from the next request on."""
        self.log.config = config
        self.rules = BatchRules(
            max_message_bytes=config.max_message_bytes,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        )
        self.keys_required = "compact" in config.cleanup_policy
        kept = config.compression_type == "producer"
        name = "none" if config.compression_type == "uncompressed" else config.compression_type
        self.codec = None if kept else Codec[name.upper()]
        """What batches are re-encoded with; None keeps the producer's."""
        self.min_insync_replicas = config.min_insync_replicas

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy of the log; an epoch in which nothing was written is not in it."""
        self.log = log
        if self.leads:
            log.assign_epoch(self.leader_epoch, log.end_offset)
        self.configure(log.config)

    def lead(
        self, leader_epoch: int, isr: tuple[int, ...], replicas: tuple[int, ...] | None = None
    ) -> None:
        """Become the leader in this epoch, or hear of other replicas or another in-sync set."""
        self.replicas = isr if replicas is None else replicas
        if leader_epoch > self.leader_epoch:
            self.log.assign_epoch(leader_epoch, self.log.end_offset)
        self.leader, self.leader_epoch, self.isr = self._broker_id, leader_epoch, isr
        self.leads = True
        self.advance()

    def check_leader(self, known_epoch: int = -1) -> None:
        """Refuse unless this broker leads, and in the epoch that the client knows, if it tells."""
        if not self.leads:
            raise NotLeader(f"{self.topic_partition} is led by broker {self.leader}")
        if known_epoch not in {-1, self.leader_epoch}:
            if known_epoch < self.leader_epoch:
                raise FencedLeaderEpoch(f"epoch {known_epoch} is before {self.leader_epoch}")
            raise UnknownLeaderEpoch(f"epoch {known_epoch} is after {self.leader_epoch}")

    def append(
        self,
        batch: bytearray | memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
    ) -> Appended:
        """Append a checked batch as the leader; coordinators' own have no sequences."""
        # As in Kafka, a topic with fewer replicas than min.insync.replicas needs all it has.
        needed = min(self.min_insync_replicas, len(self.replicas))
        if acks == -1 and len(self.isr) < needed:
            raise NotEnoughReplicas(
                f"{self.topic_partition} has {len(self.isr)} replicas in sync, {needed} are needed"
            )
        appended = self.log.append_as_leader(
            batch, header, self.leader_epoch, now_ms, from_client=from_client
        )
        self.records_in += header.record_count
        self.bytes_in += len(batch)
        self.advance()
        return appended

    def advance(self) -> bool:
        """Move the high watermark as far as every in-sync replica has come."""
        if self.isr == (self._broker_id,):
            return self.log.advance_high_watermark(self.log.end_offset)
        return False

    def visible_end(self, *, read_committed: bool) -> int:
        """The offset before which a consumer may read."""
        return self.log.last_stable_offset if read_committed else self.log.high_watermark
