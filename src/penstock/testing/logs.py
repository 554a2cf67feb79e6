"""A log store for tests, on a file system that can crash."""

from collections.abc import Callable, Iterable
from pathlib import Path

from penstock.config.topic import TopicConfig
from penstock.log.files import Files
from penstock.log.loading import load_logs
from penstock.log.partition_log import Appended, PartitionLog
from penstock.log.store import LogStore
from penstock.record.batch import CorruptBatch, batches, crc_matches, read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.record import Record, records
from penstock.testing.files import Choice, FakeFiles, lose_everything
from penstock.types import TopicPartition, Uuid

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
ROOT = Path("/data")


def batch_of(
    *values: bytes,
    timestamps: Iterable[int] | None = None,
    timestamp: int = 0,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """A batch as a producer would send it."""
    times = [timestamp] * len(values) if timestamps is None else list(timestamps)
    return build_batch(
        [
            Record(i, at, None, value, [])
            for i, (at, value) in enumerate(zip(times, values, strict=True))
        ],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=-1 if producer_id < 0 else 0,
        base_sequence=sequence,
        transactional=transactional,
    )


class LogRig:
    """A log store with one partition, and its file system."""

    def __init__(
        self,
        config: TopicConfig | None = None,
        files: Files | None = None,
        root: Path = ROOT,
        dirs: Iterable[str] = ("d0",),
    ) -> None:
        self.config = config or TopicConfig()
        self.fake = FakeFiles()
        self.files: Files = files or self.fake
        self.dirs = [root / name for name in dirs]
        self.files.make_dir(root)
        self.files.sync_dir(root.parent)
        self.boot_id = "boot-1"
        self.offline: list[tuple[Path, list[TopicPartition]]] = []
        self.store = self._open_store()
        self.store.create(PARTITION, TOPIC_ID, 0)

    def _open_store(self) -> LogStore:
        store = LogStore(
            self.files,
            self.dirs,
            lambda _topic: self.config,
            boot_id=self.boot_id,
            on_offline=lambda log_dir, gone: self.offline.append((log_dir.path, gone)),
        )
        load_logs(store, 0)
        return store

    @property
    def log(self) -> PartitionLog:
        return self.store.logs[PARTITION]

    def append(self, batch: bytearray, leader_epoch: int = 0, now_ms: int = 0) -> Appended:
        return self.log.append_as_leader(batch, read_header(batch), leader_epoch, now_ms)

    def end_transaction(
        self, producer_id: int, *, committed: bool, leader_epoch: int = 0
    ) -> Appended:
        marker = build_marker(
            producer_id=producer_id,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
            timestamp=0,
        )
        return self.append(marker, leader_epoch)

    def flush(self) -> None:
        self.log.flush()
        for log_dir in self.store.online:
            self.store.checkpoint(log_dir)

    def restart(self) -> None:
        """Shut down cleanly and restart."""
        self.store.close()
        self.store = self._open_store()

    def crash(
        self, choose: Choice = lose_everything, damage: Callable[[], None] | None = None
    ) -> None:
        """Lose power and restart; `damage` runs while the machine is off."""
        self.fake.crash(choose)
        if damage is not None:
            damage()
        self.store = self._open_store()

    def read_all(self, log: PartitionLog | None = None) -> list[tuple[int, bytes]]:
        """Offsets and values of the data records; checks CRCs as a consumer does."""
        log = log or self.log
        found: list[tuple[int, bytes]] = []
        offset = log.log_start_offset
        while (part := log.read(offset, 1, up_to=log.end_offset)) is not None:
            data = part.read()
            for position, header in batches(data):
                if not crc_matches(data, header, position):
                    raise CorruptBatch(f"offset {header.base_offset} does not match its CRC")
                if not header.is_control:
                    found += [
                        (record.offset, record.value or b"")
                        for record in records(data[position:], header, 1 << 20)
                        if record.offset >= offset
                    ]
                offset = header.next_offset
        return found
