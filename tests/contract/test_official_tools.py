"""Kafka's own command-line tools against the broker under test, without groups."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from clients.brokers import BROKERS, Target, parameters
from clients.protocol import EARLIEST, LATEST, Client, Record
from clients.settle import settled
from peers.tools import tool

pytestmark = [
    pytest.mark.peer,
    pytest.mark.parametrize("target", parameters(BROKERS), indirect=True, scope="session"),
]


Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(target: Target) -> Run:
    def run(name: str, *args: str, stdin: str = "", check: bool = True) -> CompletedProcess[str]:
        where = ("--bootstrap-server", target.bootstrap)
        return tool(name, *where, *args, stdin=stdin, check=check)

    return run


def test_kafka_topics_creates_alters_and_deletes(run: Run, referee: Client, topic: str) -> None:
    run("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    assert settled(lambda: len(referee.partitions(topic)), 2) == 2
    run("kafka-topics", "--alter", "--topic", topic, "--partitions", "3")
    assert settled(lambda: len(referee.partitions(topic)), 3) == 3
    run("kafka-topics", "--delete", "--topic", topic)
    assert settled(lambda: topic in referee.topics(), wanted=False) is False


def test_kafka_topics_lists_and_describes(run: Run, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=2, configs={"retention.ms": "5000"})
    assert topic in run("kafka-topics", "--list").stdout.split()
    summary, *partitions = run("kafka-topics", "--describe", "--topic", topic).stdout.splitlines()
    assert re.search(
        r"PartitionCount: 2\s+ReplicationFactor: 1\s+Configs: .*retention.ms=5000", summary
    )
    for number, line in zip(range(2), partitions, strict=True):
        where = rf"Partition: {number}\s+Leader: (\d+)\s+Replicas: \1\s+Isr: \1\s"
        found = re.search(where, line)
        assert found is not None
        assert int(found[1]) in referee.cluster().brokers


def test_kafka_topics_reports_that_a_topic_exists(run: Run, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    failed = run("kafka-topics", "--create", "--topic", topic, check=False)
    assert failed.returncode == 1
    assert "TopicExistsException" in failed.stderr
    assert topic in failed.stdout


def test_kafka_configs_alters_and_describes_a_topic(run: Run, referee: Client, topic: str) -> None:
    referee.create_topic(topic, configs={"retention.ms": "5000"})
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    change = ("--add-config", "segment.bytes=2097152", "--delete-config", "retention.ms")
    altered = run("kafka-configs", *of_topic, "--alter", *change)
    assert altered.stdout == f"Completed updating config for topic {topic}.\n"
    assert settled(lambda: referee.configs(topic)["segment.bytes"], "2097152") == "2097152"
    own = run("kafka-configs", *of_topic, "--describe").stdout
    assert re.findall(r"^  (\S+)=(\S+) sensitive", own, re.MULTILINE) == [
        ("segment.bytes", "2097152")
    ]
    every = run("kafka-configs", *of_topic, "--describe", "--all").stdout
    assert "\n  retention.ms=604800000 sensitive=false synonyms={" in every
    assert "\n  segment.bytes=2097152 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:" in every


def test_kafka_configs_describes_a_broker(run: Run, referee: Client) -> None:
    broker = referee.cluster().brokers[-1]
    of_broker = ("--entity-type", "brokers", "--entity-name", str(broker))
    described = run("kafka-configs", *of_broker, "--describe", "--all").stdout
    assert f"\n  broker.id={broker} sensitive=false" in described
    assert "\n  num.io.threads=8 sensitive=false" in described


def test_the_console_producer_and_consumer_carry_keys_and_headers(
    run: Run, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    reader = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    lines = "h:1\tblue\tone\nh:2\tred\ttwo\n"
    run("kafka-console-producer", "--topic", topic, *reader, stdin=lines)
    printed = run(
        "kafka-console-consumer",
        *("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "2"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true", "--timeout-ms", "20000"),
    ).stdout
    assert printed == "Offset:0\th:1\tblue\tone\nOffset:1\th:2\tred\ttwo\n"


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_console_producer_compresses(
    run: Run, referee: Client, topic: str, codec: str, codec_on_disk: Callable[[str], str]
) -> None:
    referee.create_topic(topic)
    lines = "".join(f"{'line ' * 20}{number}\n" for number in range(20))
    run("kafka-console-producer", "--topic", topic, "--compression-codec", codec, stdin=lines)
    (read,) = referee.fetch(topic, 0, (0, 20))
    assert [record.value for record in read] == lines.encode().splitlines()
    assert codec_on_disk(topic) == codec


def test_the_console_consumer_starts_at_an_offset(run: Run, referee: Client, topic: str) -> None:
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"%d" % number, partition=0) for number in range(5)])
    where = ("--topic", topic, "--partition", "0", "--offset", "3", "--max-messages", "2")
    assert run("kafka-console-consumer", *where, "--timeout-ms", "20000").stdout == "3\n4\n"


def test_get_offsets_finds_both_ends_and_timestamps(run: Run, referee: Client, topic: str) -> None:
    referee.create_topic(topic, partitions=2)
    times = [1_700_000_000_000 + number for number in range(4)]
    referee.produce(topic, [Record(b"v", partition=0, timestamp_ms=at) for at in times])
    referee.delete_records(topic, 0, 1)
    for time, offsets in {
        "latest": ["4", "0"],
        "earliest": ["1", "0"],
        "max-timestamp": ["3", ""],
        str(times[2]): ["2", ""],
    }.items():
        listed = run("kafka-get-offsets", "--topic", topic, "--time", time).stdout.splitlines()
        expected = [f"{topic}:{part}:{offset}" for part, offset in enumerate(offsets) if offset]
        assert [line for line in listed if not line.endswith((":", ":-1"))] == expected


def test_delete_records_moves_the_log_start(
    run: Run, referee: Client, topic: str, tmp_path: Path
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"v", partition=0)] * 5)
    offsets = tmp_path / "offsets.json"
    wanted = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 3}]}
    offsets.write_text(json.dumps(wanted))
    done = run("kafka-delete-records", "--offset-json-file", str(offsets)).stdout
    assert f"partition: {topic}-0\tlow_watermark: 3" in done
    assert referee.offset(topic, 0, EARLIEST) == 3


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_producer_perf_test_sends_everything(
    target: Target, referee: Client, topic: str, acks: str
) -> None:
    referee.create_topic(topic)
    printed = tool(
        "kafka-producer-perf-test",
        *("--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput", "-1"),
        *("--command-property", f"bootstrap.servers={target.bootstrap}", f"acks={acks}"),
    ).stdout
    assert printed.startswith("2000 records sent")
    assert settled(lambda: referee.offset(topic, 0, LATEST), 2000) == 2000


@pytest.mark.row("A160")
def test_log_dirs_reports_the_size_of_a_partition(
    run: Run, target: Target, referee: Client, topic: str
) -> None:
    referee.create_topic(topic)
    referee.produce(topic, [Record(b"v" * 1000, partition=0)])
    described = run("kafka-log-dirs", "--describe", "--topic-list", topic).stdout
    brokers = json.loads(described.splitlines()[-1])["brokers"]
    log_dirs = [log_dir for broker in brokers for log_dir in broker["logDirs"]]
    (log_dir,) = [log_dir for log_dir in log_dirs if log_dir["partitions"]]
    (partition,) = log_dir["partitions"]
    assert log_dir["error"] is None
    assert Path(log_dir["logDir"]).is_relative_to(target.data_dir(0))
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 1000


def test_broker_api_versions_lists_the_apis_that_clients_need(run: Run) -> None:
    printed = run("kafka-broker-api-versions").stdout
    usable = re.findall(r"^\t\w+\((\d+)\): .*\[usable: \d+\]", printed, re.MULTILINE)
    needed = {0, 1, 2, 3, 18, 19, 20, 21, 22, 32, 33, 35, 37, 44, 60}
    assert needed <= {int(key) for key in usable}


def test_cluster_prints_the_cluster_id(target: Target) -> None:
    printed = tool("kafka-cluster", "cluster-id", "--bootstrap-server", target.bootstrap).stdout
    assert re.fullmatch(r"Cluster ID: \S{22}\n", printed)
