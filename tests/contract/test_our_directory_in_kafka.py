"""A log directory that Penstock wrote is served by Kafka 3.9 on ZooKeeper.

Kafka registers the topics and stops; its partition directories and checkpoints are then replaced by
those that our store wrote.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from msgspec.structs import replace

from peers.kafka import ON_ZOOKEEPER, KafkaCluster
from peers.process import wait_until
from peers.tools import tool
from peers.zookeeper import ZooKeeper
from penstock.config.topic import TopicConfig
from penstock.log.disk import DiskFiles
from penstock.log.loading import load_logs
from penstock.log.log_dir import CLEANER_OFFSETS
from penstock.log.log_dir_owner import CLEAN_SHUTDOWN
from penstock.log.partition_log import PartitionLog
from penstock.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from penstock.log.partition_metadata import decode_partition_metadata
from penstock.log.segment_files import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX
from penstock.log.store import OFFSETS, LogStore
from penstock.log.time_search import offset_for_timestamp
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.compression import Codec
from penstock.record.control import build_marker
from penstock.record.record import Record
from penstock.types import TopicPartition, Uuid

pytestmark = pytest.mark.peer

BEGAN = 1_700_000_000_000
PLAIN, TRANSACTIONAL, STARTED = (
    TopicPartition(topic, 0) for topic in ("plain", "transactional", "started")
)
PARTITIONS = (PLAIN, TRANSACTIONAL, STARTED)
START = 70
PRODUCERS = (5, 6)
EPOCH = 0
"""The first leader epoch of a topic that Kafka has just created."""
CONFIG = TopicConfig(
    segment_bytes=20_000, index_interval_bytes=500, retention_ms=-1, segment_ms=1 << 50
)


@dataclass
class Ours:
    """The written records, as readers must see them."""

    records: dict[TopicPartition, list[Record]] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    by_time: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)


def write_plain(log: PartitionLog) -> list[Record]:
    """Writes batches of three with every codec, over several segments."""
    written = []
    for number in range(300):
        made = [
            Record(n, BEGAN + 10 * number + n, b"k%d" % n, b"v%d " % number * 20, [("h", b"1")])
            for n in range(3)
        ]
        batch = build_batch(made, codec=list(Codec)[number % len(Codec)])
        first = log.append_as_leader(batch, read_header(batch), EPOCH, BEGAN).first_offset
        written += [replace(record, offset=first + n) for n, record in enumerate(made)]
    return written


def write_transactions(log: PartitionLog) -> list[Record]:
    """Writes transactions, every second one aborted; returns the committed records."""
    written = []
    for number in range(40):
        producer_id = PRODUCERS[number % 2]
        record = Record(0, BEGAN + number, b"t", b"v%d" % number * 30, [])
        batch = build_batch(
            [record],
            producer_id=producer_id,
            producer_epoch=2,
            base_sequence=number // 2,
            transactional=True,
        )
        first = log.append_as_leader(batch, read_header(batch), EPOCH, BEGAN).first_offset
        committed = number % 4 < 2
        marker = build_marker(
            producer_id=producer_id,
            producer_epoch=2,
            committed=committed,
            coordinator_epoch=0,
            timestamp=BEGAN + number,
        )
        log.append_as_leader(marker, read_header(marker), EPOCH, BEGAN, from_client=False)
        written += [replace(record, offset=first)] if committed else []
        if number == 20:
            log.roll(BEGAN)
    return written


def write_here(data: Path, topic_ids: dict[TopicPartition, Uuid]) -> Ours:
    store = LogStore(DiskFiles(), [data], lambda _topic: CONFIG, boot_id="a boot")
    load_logs(store, BEGAN)
    logs = {each: store.create(each, topic_ids[each], BEGAN) for each in PARTITIONS}
    ours = Ours()
    ours.records[PLAIN] = write_plain(logs[PLAIN])
    ours.records[TRANSACTIONAL] = write_transactions(logs[TRANSACTIONAL])
    ours.records[STARTED] = write_plain(logs[STARTED])[START:]
    for each, log in logs.items():
        log.advance_high_watermark(log.end_offset)
        ours.ends[each] = log.end_offset
    assert logs[STARTED].maybe_increment_log_start(START)
    for timestamp in (0, BEGAN + 1, BEGAN + 777, BEGAN + 2_992, BEGAN + 9_999):
        for each in (PLAIN, STARTED):
            found = offset_for_timestamp(logs[each], timestamp)
            # librdkafka returns -1, the end, if no record is that late.
            ours.by_time[each, timestamp] = -1 if found is None else found.offset
    store.close()
    return ours


def replace_partitions(kafkas: Path, ours: Path) -> None:
    """Keeps Kafka's meta.properties; partitions, checkpoints and the clean-shutdown marker become
    ours.
    """
    for each in PARTITIONS:
        shutil.rmtree(kafkas / str(each))
        shutil.copytree(ours / str(each), kafkas / str(each))
    for name in (*OFFSETS, CLEAN_SHUTDOWN):
        shutil.copy(ours / name, kafkas / name)
    (kafkas / CLEANER_OFFSETS).unlink(missing_ok=True)


def topic_id(data: Path, partition: TopicPartition) -> Uuid:
    path = data / str(partition) / PARTITION_METADATA
    return decode_partition_metadata(path.read_bytes(), str(path))


@dataclass
class Served:
    """A running Kafka on our directory."""

    kafka: KafkaCluster
    ours: Ours
    before: dict[Path, bytes]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    here = tmp_path_factory.mktemp("ours")
    folder = tmp_path_factory.mktemp("kafka")
    with (
        ZooKeeper() as zookeeper,
        KafkaCluster(zookeeper=zookeeper.connect, folder=folder) as kafka,
    ):
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
        config = {"retention.ms": "-1", "index.interval.bytes": "500", "segment.bytes": "20000"}
        new = [NewTopic(each.topic, 1, 1, config=config) for each in PARTITIONS]
        for future in admin.create_topics(new).values():
            future.result()
        data = kafka.data_dir(0)
        kafka.stop(0)
        ours = write_here(here, {each: topic_id(data, each) for each in PARTITIONS})
        replace_partitions(data, here)
        before = {
            path: path.read_bytes() for each in PARTITIONS for path in (data / str(each)).iterdir()
        }
        kafka.start(0)
        wait_until(lambda: all_are_led(kafka.bootstrap), 20, "leaders of our partitions")
        yield Served(kafka, ours, before)


def all_are_led(bootstrap: str) -> bool:
    topics = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}).list_topics().topics
    led = [each for each in PARTITIONS if each.topic in topics]
    return led == list(PARTITIONS) and all(
        topics[each.topic].partitions[each.partition].leader == 0 for each in led
    )


def consumed(bootstrap: str, partition: TopicPartition) -> list[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "log_level": "0",
        }
    )
    low, _ = consumer.get_watermark_offsets(ClientPartition(*partition), timeout=20)
    consumer.assign([ClientPartition(*partition, low)])
    found = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        offset, headers = message.offset(), message.headers()
        assert offset is not None
        rows = cast("list[tuple[str, bytes | None]]", headers or [])
        found.append(Record(offset, message.timestamp()[1], message.key(), message.value(), rows))
    consumer.close()
    return found


@pytest.mark.row("A095")
def test_our_directory_has_every_kind_of_file(served: Served) -> None:
    kinds = {path.suffix for path in served.before}
    assert {LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT} <= kinds
    assert len([path for path in served.before if path.suffix == LOG]) > 6


@pytest.mark.parametrize("partition", PARTITIONS, ids=str)
def test_kafka_serves_our_records(served: Served, partition: TopicPartition) -> None:
    assert consumed(served.kafka.bootstrap, partition) == served.ours.records[partition]


def test_kafka_finds_our_records_by_time(served: Served) -> None:
    consumer = Consumer(
        {"bootstrap.servers": served.kafka.bootstrap, "group.id": "times", "log_level": "0"}
    )
    for (partition, timestamp), expected in served.ours.by_time.items():
        asked = [ClientPartition(*partition, timestamp)]
        (answer,) = consumer.offsets_for_times(asked, timeout=20)
        assert answer.offset == expected, (partition, timestamp)
    consumer.close()


def test_kafkas_tool_shows_our_offsets(served: Served) -> None:
    where = ("--bootstrap-server", served.kafka.bootstrap)
    for time, expected in (("-2", {STARTED: START}), ("-1", served.ours.ends)):
        shown = tool("kafka-get-offsets", *where, "--time", time, version=ON_ZOOKEEPER).stdout
        for each in PARTITIONS:
            assert f"{each.topic}:0:{expected.get(each, 0)}" in shown.split()


def test_kafka_accepts_our_files_without_recovery(served: Served) -> None:
    """Kafka logs no complaint, recovers nothing and rebuilds no index or snapshot."""
    said = served.kafka.output(0).read_text()
    assert "Skipping recovery of" in said
    complaints = re.findall(r".* (?:WARN|ERROR) .*\((?:kafka\.log|.*\.storage)\..*\)", said)
    assert complaints == []
    for path, data in served.before.items():
        # Kafka preallocates the active segment's indexes, so their files may be longer.
        assert path.read_bytes()[: len(data)] == data, path
