"""`kafka-cluster.sh`: the id of a cluster, and the addresses of its brokers."""

from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import BOOTSTRAP, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

CONFIG = text("command-config", "FILE", "Client settings.", also=("c", "config"))
CONTROLLER = text("bootstrap-controller", "HOST:PORT", "KRaft controllers.", also=("C",))


def cluster(args: Arguments) -> int:
    if args.has("bootstrap-controller"):
        raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    match args.command:
        case "cluster-id":
            run(args, _print_id)
        case "list-endpoints":
            run(args, _print_endpoints)
        case "unregister":
            raise ToolError("The target cluster does not support the broker unregistration API.")
        case _:
            raise UsageError("kafka-cluster: error: too few arguments")
    return 0


async def _print_id(client: "Client") -> None:
    from penstock.client.admin import describe_cluster

    found = (await describe_cluster(client)).id
    print(
        f"Cluster ID: {found}"
        if found
        else "No cluster ID found. The Kafka version is probably too old."
    )


async def _print_endpoints(client: "Client") -> None:
    from penstock.client.admin import describe_cluster

    brokers = (await describe_cluster(client)).brokers.values()
    host_width = max(len(each.address.host) for each in brokers)
    rack_width = max([10, *(len(each.rack or "") for each in brokers)])
    row = f"%-10s %-{host_width}s %-10s %-{rack_width}s %-10s %-15s"
    print(row % ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for each in sorted(brokers, key=lambda broker: broker.id):
        host, port = each.address
        print(row % (each.id, host, port, each.rack or "null", "unfenced", "broker"))


COMMON = (BOOTSTRAP, CONTROLLER, CONFIG)
TOOL = Tool(
    Table(
        "kafka-cluster",
        "The Kafka cluster tool.",
        COMMON,
        {
            "cluster-id": Table("cluster-id", "Get information about the ID of a cluster.", ()),
            "unregister": Table(
                "unregister", "Unregister a broker.", (number("id", "ID", "Broker.", also=("i",)),)
            ),
            "list-endpoints": Table(
                "list-endpoints",
                "List endpoints.",
                (flag("include-fenced-brokers", "Accepted; no broker is fenced."),),
            ),
        },
    ),
    cluster,
)
