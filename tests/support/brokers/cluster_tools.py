"""The output of Kafka's tools about three brokers, without what differs between clusters."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from peers.process import wait_until
from peers.tools import tool

WAIT_S = 30
TOPIC, GROUP, TRANSACTION = "orders", "readers", "writer"
ASSIGNMENT = {0: [0, 1, 2], 1: [1, 2, 0], 2: [2, 0, 1]}
MASKS = (
    (r"127\.0\.0\.1:\d+", "host:port"),
    (r"TopicId: [A-Za-z0-9_-]{22}", "TopicId: id"),
    (r"\b1[0-9]{12}\b(\s+\d+\s*$)?", "time"),  # with the age after it
    (r"[ \t]+", " "),
    # Which broker coordinates is random, and so is a producer's id.
    (rf"^({TRANSACTION}) \d+ \d+", r"\1 broker id"),
    (rf"^\d+ ({TRANSACTION}) \d+", r"broker \1 id"),
    (r"host:port \(\d+\)", "host:port (broker)"),
    # Kafka 3.9 does not know eligible leader replicas, and here there are none.
    (r"Elr: N/A LastKnownElr: N/A", "Elr: LastKnownElr:"),
)


TRACE = r"at [\w.$/]+\(|Caused by: |java\."
"""Lines of a Java stack trace."""


class Transcript:
    """Runs tools one after the other and keeps what they print."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.lines: list[str] = []

    def run(self, name: str, *args: str, keep: str = "", stdin: str = "") -> str:
        """Runs a tool and keeps its output; with `keep`, only the lines that match that pattern."""
        where = ("--bootstrap-server", self._bootstrap)
        done = tool(name, *where, *args, stdin=stdin, check=False)
        printed = done.stdout + done.stderr
        self.lines.append(f"$ {name} {' '.join(Path(each).name for each in args)}")
        found = [masked(line) for line in printed.splitlines() if re.search(keep, line)]
        self.lines += sorted(line for line in found if line and not re.match(TRACE, line))
        self.lines.append(f"= {done.returncode}")
        return printed


def masked(line: str) -> str:
    for pattern, instead in MASKS:
        line = re.sub(pattern, instead, line)
    return line.strip()


def prepare(bootstrap: str) -> None:
    """Creates a topic with records on all brokers, a group that has read some, and a
    transaction.
    """
    assignment = ",".join(":".join(map(str, ASSIGNMENT[each])) for each in sorted(ASSIGNMENT))
    create = ("--create", "--topic", TOPIC, "--replica-assignment", assignment)
    tool("kafka-topics", "--bootstrap-server", bootstrap, *create)
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTION})
    writer.init_transactions(WAIT_S)
    writer.begin_transaction()
    for number in range(30):
        writer.produce(TOPIC, b"%d" % number, partition=number % 3)
    writer.commit_transaction(WAIT_S)
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    for partition in ASSIGNMENT:
        reader.commit(offsets=[TopicPartition(TOPIC, partition, partition)], asynchronous=False)
    reader.close()


def transcript(bootstrap: str, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    prepare(bootstrap)
    reported = Transcript(bootstrap)
    for part in (describing, of_groups, of_settings, of_records, of_leaders, of_moves):
        part(reported, folder)
    return reported.lines


def describing(reported: Transcript, folder: Path) -> None:  # noqa: ARG001  all parts look alike
    reported.run("kafka-topics", "--describe", "--topic", TOPIC)
    reported.run("kafka-topics", "--describe", "--under-replicated-partitions")
    reported.run("kafka-topics", "--list")
    reported.run("kafka-get-offsets", "--topic", TOPIC)
    reported.run("kafka-broker-api-versions", keep=r"^\S+ \(id: \d")
    reported.lines += log_dirs(
        reported.run("kafka-log-dirs", "--describe", "--topic-list", TOPIC, keep="^$")
    )


def log_dirs(printed: str) -> list[str]:
    """Which replicas each broker has; sizes vary with the clients' batches, but are equal
    on all.
    """
    (line,) = [each for each in printed.splitlines() if each.startswith("{")]
    brokers = sorted(json.loads(line)["brokers"], key=lambda each: int(each["broker"]))
    return [
        " ".join(str(part[name]) for name in ("partition", "offsetLag", "isFuture"))
        + f" on {each['broker']}, {directory['error']}"
        for each in brokers
        for directory in each["logDirs"]
        for part in sorted(directory["partitions"], key=lambda part: str(part["partition"]))
    ]


def of_groups(reported: Transcript, folder: Path) -> None:  # noqa: ARG001
    reported.run("kafka-consumer-groups", "--list")
    reported.run("kafka-consumer-groups", "--describe", "--group", GROUP, keep=TOPIC)
    reported.run("kafka-consumer-groups", "--describe", "--group", GROUP, "--state", keep=GROUP)
    reset = ("--reset-offsets", "--group", GROUP, "--topic", TOPIC, "--to-latest", "--execute")
    reported.run("kafka-consumer-groups", *reset, keep=GROUP)
    reported.run(
        "kafka-consumer-groups", "--delete-offsets", "--group", GROUP, "--topic", f"{TOPIC}:0"
    )
    reported.run("kafka-consumer-groups", "--delete", "--group", GROUP)
    reported.run("kafka-transactions", "list", keep=TRANSACTION)
    reported.run(
        "kafka-transactions", "describe", "--transactional-id", TRANSACTION, keep="CompleteC"
    )
    one = ("--topic", TOPIC, "--partition", "2")
    reported.run("kafka-transactions", "describe-producers", *one, keep="^ProducerId")
    reported.run("kafka-transactions", "find-hanging", "--topic", TOPIC)


def of_settings(reported: Transcript, folder: Path) -> None:  # noqa: ARG001
    for broker in ASSIGNMENT:
        one = ("--entity-type", "brokers", "--entity-name", f"{broker}")
        reported.run("kafka-configs", "--alter", *one, "--add-config", "log.cleaner.threads=2")
        reported.run("kafka-configs", "--describe", *one, keep="log.cleaner.threads")
    everywhere = ("--entity-type", "brokers", "--entity-default")
    reported.run(
        "kafka-configs", "--alter", *everywhere, "--add-config", "log.retention.ms=86400000"
    )
    reported.run("kafka-configs", "--describe", *everywhere)
    topic = ("--entity-type", "topics", "--entity-name", TOPIC)
    reported.run("kafka-configs", "--alter", *topic, "--add-config", "max.message.bytes=2000000")
    reported.run("kafka-configs", "--describe", *topic)
    reported.run("kafka-configs", "--alter", *topic, "--delete-config", "max.message.bytes")


def of_records(reported: Transcript, folder: Path) -> None:
    wanted = [{"topic": TOPIC, "partition": each, "offset": each + 1} for each in ASSIGNMENT]
    file = folder / "delete.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    reported.run("kafka-delete-records", "--offset-json-file", str(file))
    reported.run("kafka-get-offsets", "--topic", TOPIC, "--time", "earliest")


def of_leaders(reported: Transcript, folder: Path) -> None:
    every = ("--election-type", "preferred", "--all-topic-partitions")
    reported.run("kafka-leader-election", *every)
    file = folder / "elect.json"
    file.write_text(json.dumps({"partitions": [{"topic": TOPIC, "partition": 0}]}))
    for kind in ("preferred", "unclean"):
        one = ("--election-type", kind, "--path-to-json-file", str(file))
        reported.run("kafka-leader-election", *one)


def of_moves(reported: Transcript, folder: Path) -> None:
    topics = folder / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": TOPIC}]}))
    generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "0,1,2")
    reported.run("kafka-reassign-partitions", *generate, keep="^Current|^Proposed")
    plan = folder / "plan.json"
    turned = {each: replicas[1:] for each, replicas in ASSIGNMENT.items()}
    moves = [{"topic": TOPIC, "partition": at, "replicas": to} for at, to in turned.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    given = ("--reassignment-json-file", str(plan))
    reported.run(
        "kafka-reassign-partitions", "--execute", *given, "--throttle", "1000000", keep="^[^{]"
    )
    settle(lambda: reported.run("kafka-reassign-partitions", "--list"), reported, "No partition")
    reported.run("kafka-reassign-partitions", "--verify", *given)
    reported.run("kafka-topics", "--describe", "--topic", TOPIC, keep="Partition:")
    reported.run("kafka-reassign-partitions", "--cancel", *given)
    reported.run("kafka-topics", "--delete", "--topic", TOPIC)


def settle(run: Callable[[], str], reported: Transcript, until: str) -> None:
    """Runs until the output matches; only the last output is kept."""
    before = len(reported.lines)

    def settled() -> bool:
        del reported.lines[before:]
        return until in run()

    wait_until(settled, WAIT_S, until)
