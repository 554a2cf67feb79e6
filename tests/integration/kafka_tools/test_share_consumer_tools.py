"""Tools that consume as members of a share group, on a broker."""

from collections.abc import Iterator

import msgspec
import pytest

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import ToolResult, call_tool

RECORDS = 6


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(settings={"offsets.topic.num.partitions": "1"}) as running:
        running.create_topic("t", 1)
        call(
            running,
            "kafka-console-producer.sh --topic t",
            "".join(f"{n}\n" for n in range(RECORDS)),
        )
        reset = "--reset-offsets --group g --topic t --to-earliest --execute"
        call(running, f"kafka-share-groups.sh {reset}")
        yield running


def call(broker: EmbeddedBroker, line: str, stdin: str = "") -> ToolResult:
    script, *words = line.split()
    done = call_tool(script, "--bootstrap-server", broker.bootstrap, *words, stdin=stdin)
    assert done.code == 0, done.out + done.err
    return done


def read(broker: EmbeddedBroker, count: int, *more: str) -> list[str]:
    line = f"kafka-console-share-consumer.sh --topic t --group g --max-messages {count}"
    done = call(broker, " ".join([line, "--timeout-ms 4000", *more]))
    return done.out.splitlines()


def test_released_records_come_again_and_rejected_ones_do_not(broker: EmbeddedBroker) -> None:
    counted = "--formatter-property print.delivery=true"
    assert read(broker, 2, "--release", counted) == ["Delivery:1\t0", "Delivery:1\t1"]
    assert read(broker, 1, "--reject", counted) == ["Delivery:2\t0"]
    assert read(broker, 2, counted) == ["Delivery:2\t1", "Delivery:1\t2"]
    described = call(broker, "kafka-share-groups.sh --describe --group g").out
    assert described.splitlines()[-1].split() == ["g", "t", "0", "3", "3"]


def test_a_record_that_cannot_be_printed_is_rejected_on_request(broker: EmbeddedBroker) -> None:
    call(broker, "kafka-console-producer.sh --topic t", "12345678\n")
    integers = "--value-deserializer org.apache.kafka.common.serialization.LongDeserializer"
    assert read(broker, RECORDS + 1, integers, "--reject-message-on-error") == [
        str(int.from_bytes(b"12345678", "big"))
    ]
    assert call(broker, "kafka-share-groups.sh --describe --group g").out.split()[-1] == "0"


def test_the_tool_waits_for_a_missing_topic(broker: EmbeddedBroker) -> None:
    line = "kafka-console-share-consumer.sh --topic none --timeout-ms 300"
    assert call(broker, line) == (0, "", "Processed a total of 0 messages\n")


def test_members_of_the_performance_test_share_the_records(broker: EmbeddedBroker) -> None:
    line = f"kafka-share-consumer-perf-test.sh --topic t --group g --num-records {RECORDS}"
    printed = call(broker, f"{line} --threads 2 --show-consumer-stats").out.splitlines()
    header, *members, row = printed
    figures = dict(zip(header.split(", "), row.split(", "), strict=True))
    assert figures["data.consumed.in.nMsg"] == str(RECORDS)
    assert sum(int(each.split(", ")[-2]) for each in members) == RECORDS
    warned = call(broker, f"{line} --timeout 300 --hide-header").out.splitlines()
    assert warned[0].startswith("WARNING: Exiting before consuming the expected number of records")
    assert warned[1].split(", ")[-2] == "0"


def test_the_verifiable_consumer_reports_what_it_acknowledges(broker: EmbeddedBroker) -> None:
    line = f"kafka-verifiable-share-consumer.sh --topic t --group-id v --max-messages {RECORDS}"
    printed = call(broker, f"{line} --offset-reset-strategy earliest --verbose").out
    events = [msgspec.json.decode(each) for each in printed.splitlines()]
    assert [each["name"] for each in events] == [
        "startup_complete",
        "offset_reset_strategy_set",
        *["record_data"] * RECORDS,
        "records_consumed",
        "offsets_acknowledged",
        "shutdown_complete",
    ]
    reported = {"topic": "t", "partition": 0, "count": RECORDS, "offsets": [*range(RECORDS)]}
    assert events[-2]["partitions"] == events[-3]["partitions"] == [reported]
    assert events[-2]["success"] is True
    described = call(broker, "kafka-share-groups.sh --describe --group v").out
    assert described.split()[-1] == "0"
