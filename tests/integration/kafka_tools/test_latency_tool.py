"""`kafka-e2e-latency.sh` and `kafka-metadata-quorum.sh` on a broker."""

import re

from penstock.kafka_tools.e2e_latency import report
from penstock.testing.broker import EmbeddedBroker
from support.commands.kafka_tool import call_tool

FIGURES = re.compile(
    r"0\t\d+\.\d+\nAvg latency: \d+\.\d{4} ms\n"
    r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+\n"
)


def test_round_trips_are_measured(broker: EmbeddedBroker) -> None:
    line = "--topic made --num-records 5 --producer-acks {} --record-size 20"
    more = "--record-key-size 4 --num-headers 2 --record-header-key-size 3 --record-header-size -1"
    at = ("--bootstrap-server", broker.bootstrap)
    first = call_tool("kafka-e2e-latency.sh", *at, *line.format("all").split())
    reported, figures = first.out.split("\n", 1)
    assert reported == (
        'Topic "made" does not exist. Will create topic with 1 partition(s) and replication '
        "factor = 1"
    )
    assert FIGURES.fullmatch(figures)
    again = call_tool("kafka-e2e-latency.sh", *at, *f"{line.format('1')} {more}".split())
    assert FIGURES.fullmatch(again.out), again
    refused = call_tool("kafka-e2e-latency.sh", *at, *line.format("0").split())
    assert refused.code == 1
    assert refused.err.startswith("Invalid value for --producer-acks. ")


def test_command_lines_of_old_documents_work(broker: EmbeddedBroker) -> None:
    words = (broker.bootstrap, "old", "3", "all", "10")
    done = call_tool("kafka-run-class.sh", "kafka.tools.EndToEndLatency", *words)
    assert done.code == 0, done
    assert done.out.startswith("WARNING: Positional argument usage is deprecated")
    few = call_tool("kafka-e2e-latency.sh", *words[:3])
    assert few.err.startswith("Invalid number of arguments. Expected 5 or 6 positional arguments")


def test_percentiles_are_whole_milliseconds() -> None:
    assert report([1.5, 2.5, 3.5, 4.9]) == (
        "Avg latency: 3.1000 ms\nPercentiles: 50th = 3, 99th = 4, 99.9th = 4"
    )


def test_describing_the_quorum_is_refused(broker: EmbeddedBroker) -> None:
    at = ("--bootstrap-server", broker.bootstrap)

    def reported(*words: str) -> str:
        done = call_tool("kafka-metadata-quorum.sh", *at, *words)
        assert (done.code, done.out) == (1, "")
        return done.err

    unsupported = "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not"
    assert reported("describe", "--status") == f"{unsupported} support DESCRIBE_QUORUM\n"
    removed = ("--controller-id", "1", "--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAA")
    assert reported("remove-controller", *removed) == f"{unsupported} support REMOVE_RAFT_VOTER\n"
    assert reported("describe").startswith("One of --status or --replication must be specified")
