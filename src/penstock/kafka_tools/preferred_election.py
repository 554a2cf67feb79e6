"""`kafka-preferred-replica-election.sh`, which current Kafka calls `kafka-leader-election.sh`."""

from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.leader_election import FILE, elect_and_print, read_partitions
from penstock.kafka_tools.options import CLUSTER, Table, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client


def elect(args: Arguments) -> int:
    return run(args, partial(_elect, args))


async def _elect(args: Arguments, client: "Client") -> int:
    from penstock.wire.enums import ElectionType

    path = args.find(FILE)
    wanted = None if path is None else read_partitions(path)
    return await elect_and_print(client, ElectionType.PREFERRED, wanted)


TOOL = Tool(
    Table(
        "kafka-preferred-replica-election",
        "This tool helps to causes leadership for each partition to be transferred back to the "
        "'preferred replica', it can be used to balance leadership among the servers.",
        (
            *CLUSTER,
            text("admin.config", "FILE", "As --command-config.", old=True),
            text(FILE, "FILE", "Partitions, in JSON. [all]"),
        ),
    ),
    elect,
)
