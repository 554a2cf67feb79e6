"""The same dirty log, cleaned here and by Kafka's own cleaner: both keep the same records."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from peers.kafka import KafkaCluster
from peers.process import wait_until
from peers.tools import tool
from penstock.config.storage import StorageConfig
from penstock.log.checkpoint import read_offsets
from penstock.log.compaction.cleaner import clean
from penstock.log.compaction.compactor import Compactor
from penstock.log.compaction.job import CleanedGroup, Finished
from penstock.log.compaction.swap import swap_in
from penstock.log.disk import DiskFiles
from penstock.log.inspection.verify import verify
from penstock.log.log_dir import CLEANER_OFFSETS
from penstock.log.partition_log import PartitionLog
from penstock.record.batch import BatchHeader
from penstock.record.record import Record
from penstock.types import TopicPartition
from support.brokers.log_directory import WholeBatch, open_log, read_batches, visible

pytestmark = pytest.mark.peer

PARTITION = TopicPartition("compacted", 0)
HOUR_MS = 3_600_000
RETENTION_MS = 1


class Kept(NamedTuple):
    """The parts of a batch on which two cleaners must agree. Their clocks differ, and so do the
    timestamp fields of batches that they rebuild.
    """

    offsets: tuple[int, int]
    producer: tuple[int, int, int]
    attributes: int
    newest_ms: int
    leader_epoch: int
    records: list[Record]


def kept(header: BatchHeader, records: list[Record]) -> Kept:
    return Kept(
        (header.base_offset, header.last_offset),
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.attributes,
        header.max_timestamp,
        header.leader_epoch,
        records,
    )


def write_phase(bootstrap: str, phase: int, began_ms: int, config: dict[str, str]) -> None:
    """Writes records an hour newer than the previous phase's, so that a segment rolls.

    The timestamps are in the future because transaction markers carry the broker's time.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": "0", **config})
    transactional = "transactional.id" in config
    if transactional:
        producer.init_transactions()
        producer.begin_transaction()
    for number in range(60):
        key = (number * 7 + phase * 3) % 25
        producer.produce(
            PARTITION.topic,
            key=f"key {key} of a length that is hashed" if key % 2 else f"k{key}",
            value=None if (number + phase) % 9 == 0 else f"{phase}/{number}",
            partition=0,
            timestamp=began_ms + phase * HOUR_MS + number,
        )
        if number % 10 == 9:
            assert producer.flush(20) == 0
    if transactional and phase % 2:
        producer.abort_transaction()
    elif transactional:
        producer.commit_transaction()


class Stage(NamedTuple):
    """Copies of one directory: dirty, and cleaned by Kafka."""

    dirty: Path
    cleaned: Path


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A separate broker: these tests stop it and change its files."""
    folder = tmp_path_factory.mktemp("kafka")
    with KafkaCluster(folder=folder, settings={"log.cleaner.backoff.ms": 50}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def stages(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> list[Stage]:
    """A log cleaned for the first time; then the same log, extended and cleaned again.

    At the second cleaning, the delete horizons that the first one set have passed.
    """
    began_ms = int(time.time()) * 1000
    plain = {"enable.idempotence": "false", "linger.ms": "5"}
    create_topic(kafka.bootstrap)
    for phase, codec in enumerate(["none", "lz4", "zstd", "gzip", "snappy"]):
        write_phase(kafka.bootstrap, phase, began_ms, {**plain, "compression.type": codec})
    write_phase(kafka.bootstrap, 5, began_ms, {"enable.idempotence": "true"})
    for phase in range(6, 10):
        write_phase(kafka.bootstrap, phase, began_ms, {"transactional.id": f"t{phase // 2}"})
    write_phase(kafka.bootstrap, 11, began_ms, plain)
    first = cleaned_by_kafka(kafka, tmp_path_factory.mktemp("first"))
    kafka.start(0)
    set_dirty_ratio(kafka.bootstrap, "1.0")
    for phase in (12, 13):
        write_phase(kafka.bootstrap, phase, began_ms, {"transactional.id": "t9"})
    write_phase(kafka.bootstrap, 15, began_ms, plain)
    return [first, cleaned_by_kafka(kafka, tmp_path_factory.mktemp("second"))]


def create_topic(bootstrap: str) -> None:
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "60000",
        "message.timestamp.after.max.ms": str(100 * HOUR_MS),
        "delete.retention.ms": str(RETENTION_MS),
        "min.cleanable.dirty.ratio": "1.0",  # no log is that dirty, so nothing is cleaned yet
    }
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    made = admin.create_topics([NewTopic(PARTITION.topic, 1, 1, config=config)])
    made[PARTITION.topic].result()


def cleaned_by_kafka(kafka: KafkaCluster, folder: Path) -> Stage:
    """Stops Kafka to copy the dirty log, lets it clean, and stops it to copy the result."""
    data = kafka.data_dir(0)
    kafka.stop(0)
    dirty = shutil.copytree(data, folder / "dirty")
    before = cleaned_to(data)
    kafka.start(0)
    set_dirty_ratio(kafka.bootstrap, "0.0")
    wait_until(lambda: cleaned_to(data) > before, 60, "Kafka's cleaner")
    kafka.stop(0)
    return Stage(dirty, shutil.copytree(data, folder / "cleaned"))


def cleaned_to(data: Path) -> int:
    return read_offsets(DiskFiles(), data / CLEANER_OFFSETS).get(PARTITION, 0)


def set_dirty_ratio(bootstrap: str, ratio: str) -> None:
    tool(
        "kafka-configs",
        *("--bootstrap-server", bootstrap, "--alter", "--topic", PARTITION.topic),
        *("--add-config", f"min.cleanable.dirty.ratio={ratio}"),
    )


def clean_here(log: PartitionLog, now_ms: int) -> int:
    """Cleans in this process, which is easier to debug, with the job that a broker would give."""
    files = DiskFiles()
    log.config = replace(log.config, delete_retention_ms=RETENTION_MS)
    compactor = Compactor(files, lambda: [log], _Now(now_ms), StorageConfig)
    job = compactor.job_for(log, now_ms)
    reached = -1
    for answer in clean(files, job):
        match answer:
            case CleanedGroup():
                assert swap_in(files, log, answer, now_ms)
            case Finished():
                reached = answer.cleaned_to
    log.flush()
    return reached


class _Now:
    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._now_ms


@pytest.mark.parametrize("number", [0, 1])
def test_both_cleaners_keep_the_same_records(
    stages: list[Stage], number: int, tmp_path: Path
) -> None:
    stage = stages[number]
    log = open_log(shutil.copytree(stage.dirty, tmp_path / "here"), PARTITION)
    before = sum(len(records) for _, records in read_batches(log))
    reached = clean_here(log, int(time.time() * 1000))
    here = [kept(header, records) for header, records in read_batches(log)]
    theirs = open_log(shutil.copytree(stage.cleaned, tmp_path / "there"), PARTITION)
    there = [kept(header, records) for header, records in read_batches(theirs)]
    assert here == there
    assert sum(len(each.records) for each in here) < before
    assert reached == cleaned_to(stage.cleaned)
    assert verify(DiskFiles(), tmp_path / "here", deep=True).damage == []


def test_the_compared_logs_have_tombstones_markers_and_emptied_batches(
    stages: list[Stage], tmp_path: Path
) -> None:
    first, second = (
        read_batches(open_log(shutil.copytree(stage.cleaned, tmp_path / name), PARTITION))
        for stage, name in zip(stages, ("first", "second"), strict=True)
    )
    assert any(header.is_control and header.delete_horizon_ms is None for header, _ in first)
    assert any(header.is_control and header.delete_horizon_ms for header, _ in second)
    assert any(not records for _, records in first)
    # Only of the clean part, which ended at 604; tombstones after it just got a horizon the second
    # time.
    assert _tombstones_before(first, 604) > _tombstones_before(second, 604) == 0
    assert _tombstones_before(second, 786) > 0


def _tombstones_before(found: list[WholeBatch], offset: int) -> int:
    return sum(
        record.value is None and record.offset < offset
        for _, records in found
        for record in records
    )


def test_kafkas_tool_reads_our_cleaned_log(stages: list[Stage], tmp_path: Path) -> None:
    log = open_log(shutil.copytree(stages[0].dirty, tmp_path / "here"), PARTITION)
    clean_here(log, int(time.time() * 1000))
    log.close()
    paths = sorted(log.path.glob("*.*index")) + sorted(log.path.glob("*.log"))
    names = ",".join(map(str, paths))
    shown = tool("kafka-dump-log", "--print-data-log", "--files", names).stdout
    assert "deleteHorizonMs: OptionalLong[" in shown
    assert "isvalid: false" not in shown
    assert "Found" not in shown  # how the tool's complaints about an index begin


def test_kafka_serves_our_cleaned_log(
    kafka: KafkaCluster, stages: list[Stage], tmp_path: Path
) -> None:
    log = open_log(shutil.copytree(stages[1].dirty, tmp_path / "here"), PARTITION)
    expected = newest(visible(log, committed=True))
    clean_here(log, int(time.time() * 1000))
    log.close()
    theirs = kafka.data_dir(0) / str(PARTITION)
    shutil.rmtree(theirs)
    shutil.copytree(log.path, theirs, ignore=shutil.ignore_patterns("*.deleted"))
    kafka.start(0)
    found = consumed(kafka.bootstrap)
    kafka.stop(0)
    assert newest(found) == expected
    assert newest(visible(log, committed=True)) == expected


def newest(found: list[Record]) -> dict[bytes | None, bytes]:
    """The live keys: a key with a tombstone equals a key without any record."""
    values = {record.key: record.value for record in found}
    return {key: value for key, value in values.items() if value is not None}


def consumed(bootstrap: str) -> list[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "log_level": "0",
        }
    )
    consumer.assign([ClientPartition(PARTITION.topic, 0, 0)])
    found = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        found.append(Record(message.offset() or 0, 0, message.key(), message.value(), []))
    consumer.close()
    return found
