"""Commands as documents about Kafka show them, on two brokers under a chroot of ZooKeeper.

Most of them no longer run on any current Kafka, which refuses `--zookeeper` and `--broker-list` and
lacks some of these tools.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.penstock_cluster import PenstockCluster
from peers.process import free_ports
from penstock.kafka_tools.java_order import java_hash
from support.commands.bin_scripts import ROOT, Shell

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
OFFSETS_FORMATTER = r'"kafka.coordinator.group.GroupMetadataManager\$OffsetsMessageFormatter"'
PARTITION_19 = next(
    name
    for name in (f"user_{n}" for n in range(10_000))
    if java_hash(name) < 1 << 31 and java_hash(name) % 50 == 19
)
"""A group whose offsets are in partition 19 of __consumer_offsets."""


class Stage:
    """The brokers, and a shell in which ZK and B stand for their addresses; ROOT is ZooKeeper's
    address without the chroot.
    """

    def __init__(self, shell: Shell, zookeeper: str, cluster: PenstockCluster) -> None:
        self.shell, self.cluster = shell, cluster
        self._names = {
            "ZK": f"{zookeeper}/myKafka",
            "ROOT": zookeeper,
            "B": cluster.bootstrap,
        }

    def _meant(self, line: str) -> str:
        return re.sub(r"\b(ZK|ROOT|B)\b", lambda match: self._names[match[1]], line)

    def __call__(self, line: str, *, cwd: Path | None = None) -> str:
        return self.shell.output(self._meant(line), cwd=cwd)

    def first_lines(self, line: str, count: int) -> list[str]:
        return self.shell.lines_of(self._meant(line), count)

    def write(self, name: str, content: object) -> None:
        (self.shell.folder / name).write_text(json.dumps(content))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("kafka-commands")
    shutil.copytree(ROOT / "config", folder / "config")
    shell = Shell(folder)
    (port,) = free_ports(1)
    settings = folder / "config" / "zookeeper.properties"
    text = settings.read_text().replace("2181", str(port)).replace("/tmp/", f"{folder}/")
    settings.write_text(text.replace("tickTime=2000", "tickTime=500"))
    shell.output("zookeeper-server-start.sh -daemon config/zookeeper.properties")
    try:
        address = f"127.0.0.1:{port}"
        brokers = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 50}
        with PenstockCluster(f"{address}/myKafka", 2, settings=brokers) as cluster:
            yield Stage(shell, address, cluster)
    finally:
        shell.output("zookeeper-server-stop.sh")


@pytest.mark.row("A127", "A128", "A129", "A130", "A131")
def test_topics_are_managed_by_zookeeper_address(stage: Stage) -> None:
    topics = "kafka-topics.sh --zookeeper ZK"
    assert "tp_demo_01" not in stage(f"{topics} --list")
    made = stage(f"{topics} --create --topic tp_demo_01 --partitions 3 --replication-factor 1")
    assert made.endswith("Created topic tp_demo_01.\n")
    stage(
        f"{topics} --create --topic topic_test_02 --partitions 3 --replication-factor 1 "
        "--config max.message.bytes=1048576 --config segment.bytes=10485760"
    )
    assert "tp_demo_01\n" in stage(f"{topics} --list")
    described = stage(f"{topics} --describe --topic tp_demo_01")
    assert described.startswith("Topic: tp_demo_01\tPartitionCount: 3\tReplicationFactor: 1\t")
    assert len(re.findall(r"\n\tTopic: tp_demo_01\tPartition: \d\tLeader: ", described)) == 3
    overridden = stage(f"{topics} --describe --topics-with-overrides").splitlines()
    assert not any(each.startswith("Topic: tp_demo_01\t") for each in overridden)
    (line,) = [each for each in overridden if each.startswith("Topic: topic_test_02\t")]
    assert {"max.message.bytes=1048576", "segment.bytes=10485760"} <= set(
        line.partition("Configs: ")[2].split(",")
    )
    altered = stage(f"{topics} --alter --topic tp_demo_01 --config max.message.bytes=1048576")
    assert altered.endswith("Updated config for topic tp_demo_01.\n")
    assert "max.message.bytes=1048576" in stage(f"{topics} --describe --topic tp_demo_01")
    stage(f"{topics} --alter --delete-config max.message.bytes --topic tp_demo_01")
    assert "max.message.bytes" not in stage(f"{topics} --describe --topic tp_demo_01")
    more = stage(f"{topics} --alter --topic tp_demo_01 --partition 4")
    assert more.endswith("Adding partitions succeeded!\n")
    stage(f'{topics} --create --topic tp_demo_03 --replica-assignment "0:1,1:0,0:1"')
    placed = stage(f"{topics} -describe -topic tp_demo_03")
    assert re.findall(r"Replicas: (\S+)", placed) == ["0,1", "1,0", "0,1"]
    stage(f"{topics} --create --topic topic_x --partitions 1 --replication-factor 1")
    gone = stage(f"{topics} --delete --topic topic_x")
    assert gone.startswith("Topic topic_x is marked for deletion.\n")
    assert "topic_x" not in stage(f"{topics} --list")


@pytest.mark.row("A132", "A133", "A141", "A142")
def test_lines_of_a_file_are_imported_consumed_and_dumped(stage: Stage) -> None:
    count = 20_000
    (stage.shell.folder / "nm.txt").write_text("".join(f"{n}\n" for n in range(count)))
    stage(
        "kafka-topics.sh --zookeeper ZK --create --topic tp_demo_05 --partitions 1 "
        "--replication-factor 1 --config segment.bytes=104857600"
    )
    stage("kafka-console-producer.sh --broker-list B --topic tp_demo_05 < nm.txt")
    offsets = "kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list B --topic tp_demo_05"
    assert stage(offsets) == f"tp_demo_05:0:{count}\n"
    read = stage.first_lines(
        "kafka-console-consumer.sh --bootstrap-server B --topic tp_demo_05 --from-beginning", 3
    )
    assert read == ["0\n", "1\n", "2\n"]
    (log,) = stage.cluster.folder.glob("broker-*/data/logs/tp_demo_05-0/00000000000000000000.log")
    dump = "kafka-run-class.sh kafka.tools.DumpLogSegments"
    shown = stage(f"{dump} --files 00000000000000000000.log --print-data-log", cwd=log.parent)
    assert f"payload: {count - 1}\n" in shown
    assert shown.startswith("Dumping 00000000000000000000.log\nLog starting offset: 0\n")
    stage(
        "kafka-topics.sh --zookeeper ZK --create --topic topic_1 --partitions 1 "
        "--replication-factor 1 --config segment.bytes=1048576"
    )
    wide = "".join(f"{n:0100}\n" for n in range(count))
    (stage.shell.folder / "wide.txt").write_text(wide)
    stage("kafka-console-producer.sh --broker-list B --topic topic_1 < wide.txt")
    (log,) = stage.cluster.folder.glob("broker-*/data/logs/topic_1-0/00000000000000000000.log")
    index = stage(f"{dump} --files 00000000000000000000.index", cwd=log.parent)
    assert re.search(r"^offset: \d+ position: \d+$", index, re.MULTILINE)


@pytest.mark.row("A134", "A135", "A136", "A137")
def test_groups_are_described_and_their_offsets_reset(stage: Stage) -> None:
    stage(
        "kafka-topics.sh --zookeeper ZK --create --topic tp_demo_02 --partitions 3 "
        "--replication-factor 1"
    )
    lines = "".join(f"{n}\tvalue {n}\n" for n in range(90))
    (stage.shell.folder / "keyed.txt").write_text(lines)
    stage(
        "kafka-console-producer.sh --broker-list B --topic tp_demo_02 "
        "--property parse.key=true < keyed.txt"
    )
    for group in ("user_consumer", PARTITION_19):
        stage(
            "kafka-console-consumer.sh --bootstrap-server B --new-consumer --topic tp_demo_02 "
            f"--from-beginning --group {group} --max-messages 90"
        )
    groups = "kafka-consumer-groups.sh --bootstrap-server B"
    assert {"user_consumer", PARTITION_19} <= set(stage(f"{groups} --list").split())
    described = stage(f"{groups} --describe --group user_consumer").splitlines()
    assert described[1].split()[:6] == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    ]
    assert [row.split()[5] for row in described[2:]] == ["0", "0", "0"]
    reset = f"{groups} --reset-offsets --group user_consumer"
    first = stage(f"{reset} --to-earliest --topic tp_demo_02 --execute").splitlines()[2:]
    assert {row.split()[3] for row in first} == {"0"}
    stage(f"{reset} --to-latest --topic tp_demo_02")  # a dry run
    forward = stage(f"{reset} --shift-by 10 --topic tp_demo_02:2 --execute")
    assert forward.split()[-4:] == ["user_consumer", "tp_demo_02", "2", "10"]
    back = stage(f"{reset} --shift-by -10 --topic tp_demo_02:1")
    assert back.split()[-4:] == ["user_consumer", "tp_demo_02", "1", "0"]
    line = re.compile(
        r"\[\w+,tp_demo_02,\d\]::\[OffsetMetadata\[\d+,NO_METADATA\],CommitTime \d{13},"
        r"ExpirationTime \d{13}\]\n"
    )
    found = stage.first_lines(
        "kafka-console-consumer.sh --topic __consumer_offsets --bootstrap-server B --formatter "
        f"{OFFSETS_FORMATTER} -consumer.config config/consumer.properties --from-beginning",
        3,
    )
    assert all(map(line.fullmatch, found)), found
    found = stage.first_lines(
        "kafka-simple-consumer-shell.sh --topic __consumer_offsets -partition 19 --broker-list B "
        f"--formatter {OFFSETS_FORMATTER}",
        3,
    )
    assert all(map(line.fullmatch, found)), found
    assert all(each.startswith(f"[{PARTITION_19},") for each in found)


@pytest.mark.row("A138", "A139", "A140", "A174")
def test_replicas_are_moved_and_added_and_leaders_elected(stage: Stage) -> None:
    stage(
        "kafka-topics.sh --zookeeper ZK --create --topic tp_re_01 --partitions 2 "
        "--replication-factor 1"
    )
    move = "kafka-reassign-partitions.sh --zookeeper ZK"
    planned = stage(
        f"{move} --topics-to-move-json-file config/topics-to-move.json "
        '--broker-list "0,1" --generate'
    )
    proposal = json.loads(planned.splitlines()[-1])
    assert {each["replicas"][0] for each in proposal["partitions"]} == {0, 1}
    execute = f"{move} --reassignment-json-file config/topics-to-execute.json"
    assert "Successfully started partition reassignments for tp_re_01-0,tp_re_01-1" in stage(
        f"{execute} --execute"
    )
    verified = stage(f"{execute} --verify")
    while "still in progress" in verified:
        verified = stage(f"{execute} --verify")
    assert verified.count("is completed.") == 2
    described = stage("kafka-topics.sh --zookeeper ZK --describe --topic tp_re_01")
    assert re.findall(r"Replicas: (\S+)", described) == ["0,1", "1,0"]
    stage(
        'kafka-topics.sh --zookeeper ZK --create --topic tp_demo_04 --replica-assignment "0:1,1:0"'
    )
    stage.write("preferred-replica.json", {"partitions": [{"topic": "tp_demo_04", "partition": 0}]})
    elected = stage(
        "kafka-preferred-replica-election.sh --zookeeper ZK --path-to-json-file "
        "preferred-replica.json"
    )
    assert elected == "Valid replica already elected for partitions tp_demo_04-0\n"


@pytest.mark.parametrize(
    "tool",
    [
        "kafka-preferred-replica-election.sh --zookeeper ZK",
        "kafka-leader-election.sh --bootstrap-server B --election-type preferred",
    ],
)
def test_an_election_moves_the_leader(stage: Stage, tool: str) -> None:
    topic = f"tp_moved_{len(tool)}"
    make = "kafka-topics.sh --zookeeper ZK --create --replica-assignment 1:0 --topic"
    stage(f"{make} {topic}")
    partition = {"topic": topic, "partition": 0}
    stage.write("one.json", {"partitions": [partition]})
    turned = {"version": 1, "partitions": [{**partition, "replicas": [0, 1]}]}
    stage.write("turned.json", turned)
    move = "kafka-reassign-partitions.sh --zookeeper ZK --reassignment-json-file turned.json"
    stage(f"{move} --execute")
    while "still in progress" in stage(f"{move} --verify"):
        pass
    describe = f"kafka-topics.sh --zookeeper ZK --describe --topic {topic}"
    assert re.search(r"Leader: 1\s+Replicas: 0,1", stage(describe)), "the order alone moves nobody"
    assert stage(f"{tool} --path-to-json-file one.json") == (
        f"Successfully completed leader election (PREFERRED) for partitions {topic}-0\n"
    )
    assert re.search(r"Leader: 0\s+Replicas: 0,1", stage(describe))


@pytest.mark.row("A085", "A143")
def test_zookeepers_own_client_reads_the_brokers(stage: Stage) -> None:
    shown = stage("zookeeper-shell.sh ZK ls /brokers/ids")
    assert "[0, 1]" in shown
    assert "[0, 1]" in stage("zookeeper-shell.sh ROOT ls /myKafka/brokers/ids")
    assert "myKafka" in stage("zookeeper-shell.sh ROOT ls /")
    root = stage("zookeeper-shell.sh ZK get /brokers/ids/0")
    assert '"endpoints":["PLAINTEXT://127.0.0.1:' in root
