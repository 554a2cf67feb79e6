"""Tools of Kafka's names on one broker: what no other test shows."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import ToolResult, call_tool


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"group.initial.rebalance.delay.ms": "0"}) as running:
        running.create_topic("numbers", 2)
        yield running


def call(broker: EmbeddedBroker, line: str, stdin: str = "") -> ToolResult:
    script, *words = line.split()
    return call_tool(script, "--bootstrap-server", broker.bootstrap, *words, stdin=stdin)


def out(broker: EmbeddedBroker, line: str, stdin: str = "") -> str:
    done = call(broker, line, stdin)
    assert done.code == 0, done.out + done.err
    return done.out


def test_quotas_and_passwords_of_users(broker: EmbeddedBroker) -> None:
    alice = "--entity-type users --entity-name alice"
    alter = "kafka-configs.sh --alter"
    told = out(broker, f"{alter} {alice} --add-config producer_byte_rate=1024")
    assert told == "Completed updating config for user alice.\n"
    out(broker, f"{alter} {alice} --add-config SCRAM-SHA-256=[iterations=4096,password=secret]")
    assert out(broker, f"kafka-configs.sh --describe {alice}") == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0\n"
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096\n"
    )
    everybody = "--entity-type clients --entity-default"
    assert out(broker, f"{alter} {everybody} --add-config consumer_byte_rate=7") == (
        "Completed updating default config for clients in the cluster.\n"
    )
    assert out(broker, "kafka-configs.sh --describe --entity-type clients") == (
        "Quota configs for the default client-id are consumer_byte_rate=7.0\n"
    )
    out(broker, f"{alter} {alice} --delete-config producer_byte_rate,SCRAM-SHA-256")
    out(broker, f"{alter} {everybody} --delete-config consumer_byte_rate")
    assert out(broker, f"kafka-configs.sh --describe {alice}") == ""


def test_numbers_are_written_and_read_with_checking(broker: EmbeddedBroker) -> None:
    def events(text: str) -> list[dict[str, object]]:
        return [msgspec.json.decode(line) for line in text.splitlines()]

    sent = events(out(broker, "kafka-verifiable-producer.sh --topic numbers --max-messages 5"))
    assert [each["name"] for each in sent] == [
        "startup_complete",
        *["producer_send_success"] * 5,
        "shutdown_complete",
        "tool_data",
    ]
    assert (sent[-1]["sent"], sent[-1]["acked"]) == (5, 5)
    line = "kafka-verifiable-consumer.sh --topic numbers --group-id vg --max-messages 5 --verbose"
    read = events(out(broker, line))
    assert sorted(int(str(each["value"])) for each in read if each["name"] == "record_data") == [
        *range(5)
    ]
    assert [each["name"] for each in read if "partitions_" in str(each["name"])] == [
        "partitions_assigned",
        "partitions_revoked",
    ]


def test_throughput_is_reported(broker: EmbeddedBroker) -> None:
    broker.create_topic("perf", 1)
    line = "kafka-producer-perf-test.sh --topic perf --num-records 500 --record-size 10"
    told = out(broker, f"{line} --throughput -1 --producer-props batch.size=1000 acks=1")
    assert told.startswith("500 records sent, ")
    assert told.endswith(" ms 99.9th.\n")
    header, row = out(
        broker, "kafka-consumer-perf-test.sh --topic perf --messages 500"
    ).splitlines()
    assert len(header.split(", ")) == len(row.split(", ")) == 10
    assert row.split(", ")[4] == "500"


def test_a_broken_line_leaves_the_lines_before_it(broker: EmbeddedBroker) -> None:
    broker.create_topic("lines", 1)
    line = "kafka-console-producer.sh --topic lines --property parse.key=true"
    done = call(broker, line, "a\t1\nb\t2\nbroken\nc\t3\n")
    assert (done.code, done.err) == (1, "No key separator found on line number 3: 'broken'\n")
    assert out(broker, "kafka-get-offsets.sh --topic lines") == "lines:0:2\n"


def test_a_group_goes_on_after_the_last_record_that_was_printed(broker: EmbeddedBroker) -> None:
    broker.create_topic("shared", 1)
    numbers = "".join(f"{n}\n" for n in range(20))
    out(broker, "kafka-console-producer.sh --topic shared", numbers)
    line = "kafka-console-consumer.sh --topic shared --group g --from-beginning --max-messages 3"
    assert out(broker, line).split() == ["0", "1", "2"]
    row = out(broker, "kafka-consumer-groups.sh --describe --group g").splitlines()[-1]
    assert row.split()[3:6] == ["3", "20", "17"]
    assert out(broker, line).split() == ["3", "4", "5"]


def test_what_could_not_be_printed_is_not_committed(broker: EmbeddedBroker) -> None:
    broker.create_topic("longs", 1)
    out(broker, "kafka-console-producer.sh --topic longs", "12345678\nshort\n")
    line = "kafka-console-consumer.sh --topic longs --group l --from-beginning"
    done = call(broker, f"{line} --value-deserializer LongDeserializer --max-messages 2")
    assert (done.code, done.out.split()) == (1, ["3544952156018063160"])
    assert out(broker, f"{line} --max-messages 2").split() == ["12345678", "short"]


def test_settings_of_the_consumer_are_kept_and_wrong_ones_refused(broker: EmbeddedBroker) -> None:
    broker.create_topic("committed", 1)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "t", "log_level": 0}
    )
    producer.init_transactions(10)
    for value, end in (
        (b"lost", producer.abort_transaction),
        (b"paid", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce("committed", value)
        producer.flush(10)
        end(10)
    line = "kafka-console-consumer.sh --topic committed --from-beginning --max-messages 1"
    level = "--consumer-property isolation.level=read_committed"
    assert out(broker, f"{line} {level}") == "paid\n"
    assert out(broker, f"{line} {level} --isolation-level read_uncommitted") == "lost\n"
    for wrong in (
        "--isolation-level read_commited",
        "--group g --consumer-property auto.commit.interval.ms=soon",
        "--group g --consumer-property group.protocol=new",
    ):
        refused = call(broker, f"{line} {wrong}")
        assert refused.code == 1
        assert refused.err.endswith("which is not a value of it\n"), refused.err


def test_ctrl_c_ends_the_producer_that_waits_for_a_line(broker: EmbeddedBroker) -> None:
    broker.create_topic("typed", 1)
    words = ["kafka-console-producer.sh", "--bootstrap-server", broker.bootstrap]
    typing = subprocess.Popen(
        [sys.executable, "-m", "penstock.kafka_tools", *words, "--topic", "typed"],
        stdin=subprocess.PIPE,
    )
    assert typing.stdin is not None
    typing.stdin.write(b"a\n")
    typing.stdin.flush()
    while out(broker, "kafka-get-offsets.sh --topic typed") != "typed:0:1\n":
        time.sleep(0.05)
    time.sleep(0.5)  # it has its response, and waits for the next line
    typing.send_signal(signal.SIGINT)
    try:
        assert typing.wait(5) == 130
    finally:
        typing.kill()
        typing.stdin.close()
        typing.wait()


def test_features_and_versions(broker: EmbeddedBroker) -> None:
    shown = out(broker, "kafka-features.sh describe")
    assert "Feature: transaction.version " in shown
    down = out(broker, "kafka-features.sh downgrade --feature transaction.version=1")
    assert down == "transaction.version was downgraded to 1.\n"
    up = out(broker, "kafka-features.sh upgrade --feature transaction.version=2")
    assert up == "transaction.version was upgraded to 2.\n"
    refused = call(broker, "kafka-features.sh upgrade --feature transaction.version=9")
    assert refused.code == 1
    assert refused.out.startswith("Could not upgrade transaction.version to 9. ")
    assert "\tProduce(0): " in out(broker, "kafka-broker-api-versions.sh")
    assert out(broker, "kafka-transactions.sh list").startswith("TransactionalId\tCoordinator\t")


def test_client_settings_come_from_a_file(broker: EmbeddedBroker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={broker.bootstrap}\n")
    words = ("cluster-id", "--command-config", str(file))
    assert call_tool("kafka-cluster.sh", *words).out.startswith("Cluster ID: ")
    done = call_tool("kafka-cluster.sh", "cluster-id", "--config", "/no/such")
    assert done.err == "Error: --command-config /no/such: No such file or directory\n"


def test_nobody_listens() -> None:
    done = call_tool("kafka-topics.sh", "--bootstrap-server", "127.0.0.1:1", "--list")
    assert done.code == 1
    assert done.out.startswith("Error while executing topic command : cannot connect to 127.0.0.1")
