"""A log directory written by the real Kafka reads the same here, and the other way round."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from peers.kafka import KafkaCluster
from peers.penstock import PenstockBroker
from peers.tools import tool
from penstock.cli.main import main
from penstock.log.disk import DiskFiles
from penstock.log.inspection.adopt import adopted_topics
from penstock.log.inspection.kraft import FOLDER, topic_configs
from penstock.log.inspection.verify import verify
from penstock.log.producer_snapshot import decode_snapshot
from penstock.log.segment_files import INDEX, LOG, SNAPSHOT, TIME_INDEX, TXN_INDEX
from penstock.log.time_search import offset_for_timestamp
from penstock.record.batch import read_header
from penstock.record.build import build_batch
from penstock.record.control import build_marker
from penstock.record.record import Record
from penstock.types import TopicPartition
from support.brokers.log_directory import open_log, visible
from support.transactions.stable_offsets import wait_for_markers

pytestmark = pytest.mark.peer

BEGAN = 1_700_000_000_000
TOPICS = ("plain", "codecs", "idempotent", "transactional")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass
class Written:
    """A directory that Kafka wrote, and what Kafka served from it."""

    data: Path
    uncommitted: dict[str, list[Record]] = field(default_factory=dict)
    committed: dict[str, list[Record]] = field(default_factory=dict)
    by_time: dict[tuple[str, int], int] = field(default_factory=dict)


def produce(bootstrap: str, topic: str, count: int, **config: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "linger.ms": "20", "log_level": "0"}
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer(settings)
    for number in range(count):
        producer.produce(
            topic,
            key=f"k{number % 7}",
            value=None if number % 11 == 10 else f"v{number} " * 40,
            partition=0,
            timestamp=BEGAN + number,
            headers=[("h", b"1"), ("none", None)] if number % 3 == 0 else None,
        )
        producer.poll(0)
    assert producer.flush(20) == 0


def transact(bootstrap: str, *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", "log_level": "0"})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(5):
        producer.produce("transactional", key=f"k{number}", value=b"v", partition=0)
    assert producer.flush(20) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)()


def as_record(message: Message) -> Record:
    offset, headers = message.offset(), message.headers()
    assert offset is not None
    return Record(
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        cast("list[tuple[str, bytes | None]]", headers or []),
    )


def consume(bootstrap: str, topic: str, isolation: str) -> list[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "log_level": "0",
        }
    )
    consumer.assign([ClientPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        found.append(as_record(message))
    consumer.close()
    return found


def offset_at(bootstrap: str, topic: str, timestamp: int) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "times", "log_level": "0"})
    (answer,) = consumer.offsets_for_times([ClientPartition(topic, 0, timestamp)], timeout=20)
    consumer.close()
    offset: int = answer.offset
    return offset


def change_settings(admin: AdminClient) -> None:
    """Changes one setting and removes another; deletes a topic and recreates it without its
    settings.
    """

    def wait(futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result()

    changes = [
        ConfigEntry("segment.bytes", None, incremental_operation=AlterConfigOpType.DELETE),
        ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET),
    ]
    plain = ConfigResource(ResourceType.TOPIC, "plain", incremental_configs=changes)
    wait(admin.incremental_alter_configs([plain]))
    wait(admin.create_topics([NewTopic("again", 1, 1, config={"retention.ms": "1"})]))
    wait(admin.delete_topics(["again"]))
    wait(admin.create_topics([NewTopic("again", 1, 1)]))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("kafka")
    # Many snapshots of the metadata, with records after the last one.
    often = {"metadata.log.max.record.bytes.between.snapshots": 2000}
    with KafkaCluster(folder=folder, settings=often) as kafka:
        where = kafka.bootstrap
        small = {"segment.bytes": str(1 << 20), "index.interval.bytes": "1000"}
        admin = AdminClient({"bootstrap.servers": where, "log_level": 0})
        made = admin.create_topics([NewTopic(name, 1, 1, config=small) for name in TOPICS])
        for future in made.values():
            future.result()
        change_settings(admin)
        produce(where, "plain", 12_000, enable_idempotence="false", batch_size="5000")
        for codec in CODECS:
            produce(where, "codecs", 200, compression_type=codec, enable_idempotence="false")
        produce(where, "idempotent", 500, enable_idempotence="true", batch_size="2000")
        for commit in (True, False, True):
            transact(where, commit=commit)
        wait_for_markers(where, "transactional", 1)
        kept = Written(kafka.data_dir(0))
        for topic in TOPICS:
            kept.uncommitted[topic] = consume(where, topic, "read_uncommitted")
            kept.committed[topic] = consume(where, topic, "read_committed")
        for timestamp in (0, BEGAN, BEGAN + 1, BEGAN + 4321, BEGAN + 11_999, BEGAN + 12_000):
            for topic in ("plain", "codecs", "idempotent"):
                kept.by_time[topic, timestamp] = offset_at(where, topic, timestamp)
        kafka.stop(0)
        yield kept


def dumped_files(data: Path) -> list[Path]:
    suffixes = {LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT}
    return [
        path
        for topic in TOPICS
        for path in sorted((data / f"{topic}-0").iterdir())
        if path.suffix in suffixes
    ]


def our_dump(paths: list[Path], *options: str) -> list[str]:
    result = CliRunner().invoke(main, ["log", "dump", *options, *map(str, paths)])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def kafkas_dump(paths: list[Path], *options: str) -> list[str]:
    shown = tool("kafka-dump-log", *options, "--files", ",".join(map(str, paths)))
    return [line for line in shown.stdout.splitlines() if line]


def test_our_dump_equals_that_of_kafkas_tool(written: Written) -> None:
    paths = dumped_files(written.data)
    assert {path.suffix for path in paths} == {LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT}
    assert our_dump(paths, "--print-data-log") == kafkas_dump(paths, "--print-data-log")


def test_our_dump_of_krafts_log_equals_that_of_kafkas_tool(written: Written) -> None:
    metadata = written.data / FOLDER
    paths = sorted(path for path in metadata.iterdir() if path.suffix in {LOG, ".checkpoint"})
    assert {path.suffix for path in paths} == {LOG, ".checkpoint"}
    shown = our_dump(paths, "--decoder", "cluster_metadata")
    # Kafka's tool writes a colon after most names, but not after these two.
    kafkas = [
        re.sub(r"(?<=\] )(Snapshot\w+) ", r"\1: ", line)
        for line in kafkas_dump(paths, "--cluster-metadata-decoder")
    ]
    assert shown == kafkas
    reported = "\n".join(shown)
    for name in ("PARTITION_CHANGE", "PRODUCER_IDS", "REGISTER_BROKER", "REMOVE_TOPIC"):
        assert f'"type":"{name}_RECORD"' in reported
    assert "LeaderChange: {" in reported
    assert "SnapshotFooter: {" in reported


def test_verify_finds_no_damage(written: Written) -> None:
    report = verify(DiskFiles(), written.data, deep=True)
    assert report.damage == []
    assert report.records >= 13_000


def test_adopt_finds_every_topic(written: Written) -> None:
    adopted = adopted_topics(DiskFiles(), written.data)
    assert set(TOPICS) <= {topic.name for topic in adopted.topics}
    assert adopted.clean_shutdown
    assert adopted.broker_id == 0
    assert "__cluster_metadata-0" in adopted.ignored


def test_adopt_finds_the_settings_in_krafts_log(written: Written) -> None:
    adopted = adopted_topics(DiskFiles(), written.data)
    configs = {topic.name: topic.configs for topic in adopted.topics}
    assert configs["plain"] == {"retention.ms": "-1", "index.interval.bytes": "1000"}
    assert configs["codecs"] == {"segment.bytes": "1048576", "index.interval.bytes": "1000"}
    assert configs["again"] == {}
    assert configs["__transaction_state"]["cleanup.policy"] == "compact"


def test_a_snapshot_replaces_the_log_before_it(written: Written, tmp_path: Path) -> None:
    metadata = shutil.copytree(written.data / FOLDER, tmp_path / FOLDER)
    (metadata / f"{0:020d}.log").unlink()
    assert topic_configs(DiskFiles(), tmp_path)["codecs"] == {
        "segment.bytes": "1048576",
        "index.interval.bytes": "1000",
    }


def test_a_directory_that_kafka_is_using_is_not_adopted(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    words = ["log", "adopt", str(kafka.data_dir(0)), "--dir", str(tmp_path / "home")]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, "is in use" in result.stderr) == (2, True), result.output
    assert not (tmp_path / "home").exists()


def test_an_adopted_directory_is_served_as_by_kafka(written: Written, tmp_path: Path) -> None:
    data = shutil.copytree(written.data, tmp_path / "data")
    served = PenstockBroker("--set", f"log.dirs={data}", folder=tmp_path)
    # Its records are from 2023: by default retention would delete them.
    words = ["log", "adopt", str(data), "--dir", str(served.directory), "-c", "retention.ms=-1"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    with served:
        for topic in TOPICS:
            assert (
                consume(served.bootstrap, topic, "read_uncommitted") == written.uncommitted[topic]
            )
            assert consume(served.bootstrap, topic, "read_committed") == written.committed[topic]
        for (topic, timestamp), expected in written.by_time.items():
            assert offset_at(served.bootstrap, topic, timestamp) == expected, (topic, timestamp)
        produce(served.bootstrap, "codecs", 10, enable_idempotence="true")
        grown = consume(served.bootstrap, "codecs", "read_committed")
    kept = written.committed["codecs"]
    assert grown[: len(kept)] == kept
    assert len(grown) == len(kept) + 10
    report = verify(DiskFiles(), data, deep=True)
    assert report.damage == []


@pytest.mark.parametrize("topic", TOPICS)
def test_our_log_reads_the_records_that_kafkas_consumers_got(
    written: Written, topic: str, tmp_path: Path
) -> None:
    data = shutil.copytree(written.data, tmp_path / "data")
    log = open_log(data, TopicPartition(topic, 0))
    assert visible(log, committed=False) == written.uncommitted[topic]
    assert visible(log, committed=True) == written.committed[topic]


def test_offsets_by_timestamp_equal_those_of_kafka(written: Written, tmp_path: Path) -> None:
    data = shutil.copytree(written.data, tmp_path / "data")
    for (topic, timestamp), expected in written.by_time.items():
        found = offset_for_timestamp(open_log(data, TopicPartition(topic, 0)), timestamp)
        # librdkafka returns -1, the end, if no record is that late.
        assert (-1 if found is None else found.offset) == expected, (topic, timestamp)


@pytest.mark.parametrize("topic", ["idempotent", "transactional"])
def test_producer_state_replayed_from_the_log_equals_kafkas_snapshot(
    written: Written, topic: str, tmp_path: Path
) -> None:
    data = shutil.copytree(written.data, tmp_path / "data")
    newest = max((data / f"{topic}-0").glob(f"*{SNAPSHOT}"))
    snapshot = newest.read_bytes()
    for path in (data / f"{topic}-0").glob(f"*{SNAPSHOT}"):
        path.unlink()
    log = open_log(data, TopicPartition(topic, 0), clean=False)
    assert int(newest.stem) == log.end_offset
    assert log.producers.snapshot() == snapshot
    assert decode_snapshot(snapshot, "it")


@pytest.mark.row("A106")
def test_kafkas_tool_reads_our_log(tmp_path: Path) -> None:
    partition = TopicPartition("ours", 0)
    (tmp_path / str(partition)).mkdir()
    log = open_log(tmp_path, partition)

    def write(batch: bytearray) -> None:
        log.append_as_leader(batch, read_header(batch), 3, BEGAN)

    for number in range(300):
        write(build_batch([Record(0, BEGAN + number, b"k%d" % number, b"v" * 50, [("h", b"1")])]))
    for producer_id in (7, 8):
        write(
            build_batch(
                [Record(n, BEGAN, b"t", b"v", []) for n in range(3)],
                producer_id=producer_id,
                producer_epoch=2,
                base_sequence=(1 << 31) - 2,
                transactional=True,
            )
        )
    write(
        build_marker(
            producer_id=7, producer_epoch=2, committed=False, coordinator_epoch=5, timestamp=BEGAN
        )
    )
    log.close()
    paths = [
        path
        for path in sorted((tmp_path / str(partition)).iterdir())
        if path.suffix in {LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT}
    ]
    assert {path.suffix for path in paths} == {LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT}
    shown = kafkas_dump(paths, "--print-data-log")
    assert our_dump(paths, "--print-data-log") == shown
    assert not [line for line in shown if "isvalid: false" in line]
    kafkas_dump([path for path in paths if path.suffix == INDEX], "--index-sanity-check")
