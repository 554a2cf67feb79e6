"""`kafka-replica-verification.sh` runs until it is stopped."""

import subprocess
import sys

from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool


def test_the_tool_reports_how_far_it_has_compared(broker: EmbeddedBroker) -> None:
    broker.create_topic("t", 1)
    at = ("--bootstrap-server", broker.bootstrap)
    call_tool("kafka-console-producer.sh", *at, "--topic", "t", stdin="a\nb\n")
    script = "kafka-replica-verification.sh"
    words = ["--broker-list", broker.bootstrap, "--topics-include", "t", "--time", "-2"]
    words += ["--report-interval-ms", "1", "--max-wait-ms", "10"]
    with subprocess.Popen(
        [sys.executable, "-m", "penstock.kafka_tools", script, *words],
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        try:
            reported = [running.stdout.readline().partition(": ")[2] for _ in range(3)]
        finally:
            running.terminate()
    assert reported[0] == "verification process is started\n"
    assert reported[2] == "max lag is 0 for partition t-0 at offset 2 among 1 partitions\n"


def test_without_a_topic_there_is_nothing_to_compare(broker: EmbeddedBroker) -> None:
    script = "kafka-replica-verification.sh"
    done = call_tool(script, "--broker-list", broker.bootstrap, "--topics-include", "none")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("No topics found. [topics-include] if specified, ")
