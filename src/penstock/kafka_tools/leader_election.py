"""`kafka-leader-election.sh`: elects leaders of partitions."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.partition_json import field, listed, read_json
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.types import TopicPartition
    from penstock.wire.enums import ElectionType

FILE = "path-to-json-file"
OPTIONS = (
    *CLUSTER,
    text("admin.config", "FILE", "As --command-config.", old=True),
    text("election-type", "preferred|unclean", "Which replica is to lead.", required=True),
    text("topic", "TOPIC", "The topic of the partition."),
    number("partition", "N", "The partition; needs --topic."),
    text(FILE, "FILE", "Partitions, in JSON."),
    flag("all-topic-partitions", "All partitions that need it."),
)


def elect(args: Arguments) -> int:
    args.require("election-type")
    scopes = args.given(("topic", "all-topic-partitions", FILE))
    if len(scopes) != 1:
        raise UsageError(
            "One and only one of the following options is required: "
            f"topic, all-topic-partitions, {FILE}"
        )
    if args.has("topic") != args.has("partition"):
        raise UsageError(
            "Missing required option(s): partition"
            if args.has("topic")
            else "Option partition is only allowed if topic is used"
        )
    return run(args, partial(_elect, args))


def read_partitions(path: str) -> "list[TopicPartition]":
    from penstock.types import TopicPartition

    about = f"--{FILE} {path}"
    found = [
        TopicPartition(field(row, "topic", str, about), field(row, "partition", int, about))
        for row in listed(read_json(path, FILE), "partitions", about)
    ]
    if len(found) != len(set(found)):
        twice = sorted({each for each in found if found.count(each) > 1})
        raise ToolError(
            f"Replica election data contains duplicate partitions: {','.join(map(str, twice))}"
        )
    return found


async def _elect(args: Arguments, client: "Client") -> int:
    from penstock.types import TopicPartition
    from penstock.wire.enums import ElectionType

    given = args.text("election-type").upper()
    if given not in ElectionType.__members__:
        raise UsageError(f"Cannot parse argument '{given}' of option election-type")
    wanted: list[TopicPartition] | None = None
    if args.has(FILE):
        wanted = read_partitions(args.text(FILE))
    elif args.has("topic"):
        wanted = [TopicPartition(args.text("topic"), args.number("partition"))]
    return await elect_and_print(client, ElectionType[given], wanted)


async def elect_and_print(
    client: "Client", election: "ElectionType", wanted: "list[TopicPartition] | None"
) -> int:
    """Elect leaders, and print the result for each partition; returns 1 if any failed."""
    from penstock.client.elections import elect_leaders
    from penstock.client.errors import BrokerRefused
    from penstock.errors import ErrorCode
    from penstock.kafka_tools.messages import exception_name, refusal_text

    outcomes = await elect_leaders(client, election, wanted)
    done = [each for each, error in outcomes.items() if error is None]
    unneeded = [
        each
        for each, error in outcomes.items()
        if error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED
    ]
    failures = {
        each: error
        for each, error in outcomes.items()
        if isinstance(error, BrokerRefused) and error.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    kind = election.name
    if done:
        print(f"Successfully completed leader election ({kind}) for partitions {_joined(done)}")
    if unneeded:
        print(f"Valid replica already elected for partitions {_joined(unneeded)}")
    for partition, error in failures.items():
        print(
            f"Error completing leader election ({kind}) for partition: {partition}: "
            f"{exception_name(error)}: {refusal_text(error)}"
        )
    if failures:
        print(f"{len(failures)} replica(s) could not be elected", file=sys.stderr)
        return 1
    return 0


def _joined(partitions: "list[TopicPartition]") -> str:
    return ", ".join(map(str, partitions))


TOOL = Tool(
    Table(
        "kafka-leader-election",
        "This tool attempts to elect a new leader for a set of topic partitions. The type of "
        "elections supported are preferred replicas and unclean replicas.",
        OPTIONS,
    ),
    elect,
)
