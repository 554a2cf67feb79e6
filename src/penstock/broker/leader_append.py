"""The one way to append to a partition as its leader."""

from penstock.broker.waiters import Waiters
from penstock.log.flush import Flusher
from penstock.log.partition_log import Appended
from penstock.record.batch import BatchHeader
from penstock.replication.partition import Partition


class LeaderAppend:
    """Appends a checked batch, wakes its waiters, and requests a flush if one is due.

    Refused unless this broker leads. Belongs to the event loop.
    """

    def __init__(self, waiters: Waiters, flusher: Flusher) -> None:
        self._waiters, self._flusher = waiters, flusher

    def __call__(
        self,
        partition: Partition,
        batch: bytearray | memoryview,
        header: BatchHeader,
        acks: int,
        now_ms: int,
        *,
        from_client: bool = True,
    ) -> Appended:
        partition.check_leader()
        appended = partition.append(batch, header, acks, now_ms, from_client=from_client)
        topic_partition = partition.topic_partition
        self._waiters.changed(topic_partition)
        if appended.flush_due:
            flushed = self._flusher.request(partition.log)
            flushed.add_done_callback(lambda _: self._waiters.changed(topic_partition))
        return appended
