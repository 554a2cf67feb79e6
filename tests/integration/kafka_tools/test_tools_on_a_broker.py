"""Tools with Kafka's names on one broker: cases that no other test covers."""

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


def test_quotas_and_passwords_of_users_are_set_and_described(broker: EmbeddedBroker) -> None:
    alice = "--entity-type users --entity-name alice"
    alter = "kafka-configs.sh --alter"
    reported = out(broker, f"{alter} {alice} --add-config producer_byte_rate=1024")
    assert reported == "Completed updating config for user alice.\n"
    out(broker, f"{alter} {alice} --add-config SCRAM-SHA-256=[iterations=4096,password=secret]")
    assert out(broker, f"kafka-configs.sh --describe {alice}") == (
        "Quota configs for user-principal 'alice' are producer_byte_rate=1024.0\n"
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096\n"
    )
    weak = call(
        broker, f"{alter} {alice} --add-config SCRAM-SHA-256=[iterations=1,password=a,canary]"
    )
    assert (weak.code, "canary" in weak.out + weak.err) == (1, False)
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


def test_the_verifiable_tools_write_and_read_numbers(broker: EmbeddedBroker) -> None:
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
    reported = out(broker, f"{line} --throughput -1 --producer-props batch.size=1000 acks=1")
    assert reported.startswith("500 records sent, ")
    assert reported.endswith(" ms 99.9th.\n")
    header, row = out(
        broker, "kafka-consumer-perf-test.sh --topic perf --messages 500"
    ).splitlines()
    assert len(header.split(", ")) == len(row.split(", ")) == 10
    assert row.split(", ")[4] == "500"


def test_figures_are_printed_in_the_requested_forms(broker: EmbeddedBroker) -> None:
    for topic in ("fig.ures", "fig-ures"):
        broker.create_topic(topic, 1)
        line = f"kafka-producer-perf-test.sh --topic {topic} --num-records 9 --record-size 10"
        reported = out(broker, f"{line} --throughput -1 --print-metrics")
        assert "\nMetric Name " in reported
        assert "producer-metrics:record-send-total:{client-id=perf-producer-client}" in reported
    line = "kafka-consumer-perf-test.sh --topic fig.ures --messages 18 --hide-header"
    options = "--timeout 500 --date-format HH'h' --print-metrics --fetch-size 1"
    row, _, _, _, *metrics = out(broker, f"{line} {options}").splitlines()
    start, end, _, _, count, *_ = row.split(", ")
    assert (start[2:], end[2:], count) == ("h", "h", "9"), "a topic's name is no pattern"
    assert [each.split()[-1] for each in metrics][1::2] == ["90.000", "9.000"]
    refused = call(broker, f"{line} --date-format b")
    assert (refused.code, refused.err) == (
        1,
        "Error: --date-format: Illegal pattern character 'b'\n",
    )


def test_the_performance_tools_use_the_given_settings(broker: EmbeddedBroker) -> None:
    """Acks, transactions and groups are as requested."""
    broker.create_topic("asked", 1)
    line = "kafka-producer-perf-test.sh --topic asked --num-records 40 --record-size 10"
    line += " --throughput 400 --producer-props"
    log = broker.running.services.replicas.partitions.get("asked", 0).log
    for settings, ids in (("acks=0", 0), ("acks=1", 0), ("acks=all", 1)):
        out(broker, f"{line} {settings}")
        assert len(log.producers.producers) == ids, settings
    for acks in ("0", "1"):
        console = f"kafka-console-producer.sh --topic asked --request-required-acks {acks}"
        out(broker, console, "a\nb\n")
        assert len(log.producers.producers) == 1, "no new id"
    console = "kafka-console-producer.sh --topic asked --producer-property"
    out(broker, f"{console} acks=all --request-required-acks 1", "a\n")
    assert len(log.producers.producers) == 1, "an option wins over a property"
    refused = call(broker, f"{console} batch.size=large", "a\n")
    assert refused == (1, "", "batch.size is 'large', which is not a value of it\n")
    numbers = "kafka-verifiable-producer.sh --topic asked --max-messages 2"
    for acks, ids in (("0", 1), ("1", 1), ("-1", 2)):
        assert '"acked":2' in out(broker, f"{numbers} --acks {acks}")
        assert len(log.producers.producers) == ids, acks
    transactional = f"{line} acks=all --transactional-id perf --transaction-duration-ms 1"
    markers = 0
    for count in (40, 400, 4000):  # a busy machine may be late and send many at once
        before = log.end_offset
        reported = out(broker, transactional.replace("records 40", f"records {count}"))
        assert f"{count} records sent, " in reported
        markers = log.end_offset - before - count
        if markers > 1:
            break
    assert markers > 1
    described = out(broker, "kafka-transactions.sh describe --transactional-id perf")
    assert "CompleteCommit" in described
    line = "kafka-consumer-perf-test.sh --topic asked --messages 171 --group perf"
    assert out(broker, line).splitlines()[1].split(", ")[4] == "171"
    row = out(broker, "kafka-consumer-groups.sh --describe --group perf").splitlines()[-1].split()
    assert (row[0], row[5]) == ("perf", "0")


@pytest.mark.parametrize(
    "line",
    [
        "kafka-console-producer.sh --topic numbers --producer-property transactional.id=x",
        "kafka-verifiable-producer.sh --topic numbers --max-messages 1 --command-config FILE",
    ],
)
def test_a_transactional_id_is_refused_by_tools_without_transactions(
    broker: EmbeddedBroker, line: str, tmp_path: Path
) -> None:
    (tmp_path / "producer.properties").write_text("transactional.id=x\n")
    refused = call(broker, line.replace("FILE", str(tmp_path / "producer.properties")), "a\n")
    assert refused.code == 1
    assert "transactional.id: this tool writes no transactions" in refused.err + refused.out


def test_lines_before_a_broken_line_are_written(broker: EmbeddedBroker) -> None:
    broker.create_topic("lines", 1)
    line = "kafka-console-producer.sh --topic lines --property parse.key=true"
    done = call(broker, line, "a\t1\nb\t2\nbroken\nc\t3\n")
    assert (done.code, done.err) == (1, "No key separator found on line number 3: 'broken'\n")
    assert out(broker, "kafka-get-offsets.sh --topic lines") == "lines:0:2\n"


def test_a_group_continues_after_the_last_printed_record(broker: EmbeddedBroker) -> None:
    broker.create_topic("shared", 1)
    numbers = "".join(f"{n}\n" for n in range(20))
    out(broker, "kafka-console-producer.sh --topic shared", numbers)
    line = "kafka-console-consumer.sh --topic shared --group g --from-beginning --max-messages 3"
    assert out(broker, line).split() == ["0", "1", "2"]
    row = out(broker, "kafka-consumer-groups.sh --describe --group g").splitlines()[-1]
    assert row.split()[3:6] == ["3", "20", "17"]
    assert out(broker, line).split() == ["3", "4", "5"]


def test_topics_are_names_and_patterns_separated_by_commas(broker: EmbeddedBroker) -> None:
    for topic in ("left", "right"):
        broker.create_topic(topic, 1)
        out(broker, f"kafka-console-producer.sh --topic {topic}", f"{topic}\n")
    assert out(broker, "kafka-get-offsets.sh --topic left,rig.t") == "left:0:1\nright:0:1\n"
    line = "kafka-console-consumer.sh --from-beginning --include left,right --max-messages 2"
    reported = out(broker, f"{line} --enable-systest-events").split()
    assert (sorted(reported[:2]), reported[2:]) == (["left", "right"], ["shutdown_complete"])


@pytest.mark.parametrize(
    "line",
    [
        "kafka-get-offsets.sh --topic [",
        "kafka-get-offsets.sh --topic-partitions [:1",
        "kafka-console-consumer.sh --include [",
        "kafka-console-consumer.sh --include [ --group g",
        "kafka-consumer-perf-test.sh --include [ --messages 1",
    ],
)
def test_an_invalid_pattern_is_refused(broker: EmbeddedBroker, line: str) -> None:
    refused = call(broker, line)
    assert refused.code == 1
    assert "[ is an invalid regex: " in refused.err


def test_records_that_could_not_be_printed_are_not_committed(broker: EmbeddedBroker) -> None:
    broker.create_topic("longs", 1)
    out(broker, "kafka-console-producer.sh --topic longs", "12345678\nshort\n")
    line = "kafka-console-consumer.sh --topic longs --group l --from-beginning"
    done = call(broker, f"{line} --value-deserializer LongDeserializer --max-messages 2")
    assert (done.code, done.out.split()) == (1, ["3544952156018063160"])
    assert out(broker, f"{line} --max-messages 2").split() == ["12345678", "short"]


def test_consumer_settings_are_used_and_wrong_ones_refused(broker: EmbeddedBroker) -> None:
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


def test_ctrl_c_ends_a_producer_that_waits_for_a_line(broker: EmbeddedBroker) -> None:
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
    time.sleep(0.5)  # the record is acknowledged, and the tool waits for the next line
    typing.send_signal(signal.SIGINT)
    try:
        assert typing.wait(5) == 130
    finally:
        typing.kill()
        typing.stdin.close()
        typing.wait()


def test_features_and_versions_are_described(broker: EmbeddedBroker) -> None:
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


def test_client_settings_may_come_from_a_config_provider(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "config.providers=env\n"
        "config.providers.env.class="
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "bootstrap.servers=${env:BROKERS}\n"
    )
    monkeypatch.setenv("BROKERS", broker.bootstrap)
    listed = call_tool("kafka-consumer-groups.sh", "--command-config", str(file), "--list")
    assert listed.code == 0, listed.err


def test_any_client_setting_may_come_from_a_config_provider(
    broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = "kept-elsewhere"
    broker.create_topic(topic, 1)
    file = tmp_path / "client.properties"
    file.write_text(
        "config.providers=env\n"
        "config.providers.env.class="
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
        "acks=${env:ACKS}\n"
    )
    monkeypatch.setenv("ACKS", "all")
    monkeypatch.setenv("RESET", "earliest")
    to = ("--bootstrap-server", broker.bootstrap, "--topic", topic)
    words = (*to, "--producer.config", str(file), "--producer-property", "acks=${env:ACKS}")
    written = call_tool("kafka-console-producer.sh", *words, stdin="one\n")
    assert (written.code, written.err) == (0, "")
    reset = ("--consumer-property", "auto.offset.reset=${env:RESET}")
    few = ("--max-messages", "1", "--timeout-ms", "60000")
    read = call_tool("kafka-console-consumer.sh", *to, "--consumer.config", str(file), *reset, *few)
    assert read.out == "one\n", read.err


def test_arguments_that_no_request_can_hold_are_refused(broker: EmbeddedBroker) -> None:
    wide = call(broker, "kafka-topics.sh --create --topic wide --replica-assignment 2147483648")
    assert "no broker has an id above 2147483647" in wide.out
    bytes_only = call_tool("kafka-groups.sh", "--list", "--bootstrap-server", "a\udcffb:1")
    assert bytes_only.code == 1
    assert "is not UTF-8" in bytes_only.err
    assert "internal error" not in wide.out + bytes_only.err


def test_an_unreachable_broker_is_reported() -> None:
    done = call_tool("kafka-topics.sh", "--bootstrap-server", "127.0.0.1:1", "--list")
    assert done.code == 1
    assert done.out.startswith("Error while executing topic command : cannot connect to 127.0.0.1")
