"""`kafka-log-dirs.sh`: prints the log directories of brokers and their replicas as JSON."""

from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.java_order import java_order, partition_hash
from penstock.kafka_tools.options import CLUSTER, Table, flag, text
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.log_dirs import LogDirDescription
    from penstock.types import BrokerId

OPTIONS = (
    *CLUSTER,
    flag("describe", "Describe the log directories."),
    text("topic-list", "TOPIC,...", "Only these topics. [all]", default=""),
    text("broker-list", "0,1,...", "Only these brokers. [all]", default=""),
)


def log_dirs(args: Arguments) -> int:
    args.require("describe")
    run(args, partial(_describe, args))
    return 0


async def _describe(args: Arguments, client: "Client") -> None:
    import msgspec

    from penstock.client.admin import describe_cluster
    from penstock.client.log_dirs import describe_log_dirs
    from penstock.types import BrokerId

    topics = {each for each in args.text("topic-list").split(",") if each}
    live = list((await describe_cluster(client)).brokers)
    try:
        wanted = {BrokerId(int(each)) for each in args.text("broker-list").split(",") if each}
    except ValueError:
        raise ToolError("--broker-list must be like 0,1,2") from None
    if missing := sorted(wanted - set(live)):
        raise ToolError(
            f"The given brokers do not exist from --broker-list: {','.join(map(str, missing))}. "
            f"Current existent brokers: {','.join(map(str, live))}"
        )
    print("Querying brokers for log directories information")
    brokers = sorted(wanted or live)
    rows = [_broker(each, await describe_log_dirs(client, each), topics) for each in brokers]
    print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    print(msgspec.json.encode({"brokers": rows, "version": 1}).decode())


def _broker(
    broker: "BrokerId", directories: "list[LogDirDescription]", topics: set[str]
) -> dict[str, Any]:
    return {
        "broker": broker,
        "logDirs": [
            {
                "partitions": [
                    {
                        "partition": str(partition),
                        "size": each.replicas[partition].size,
                        "offsetLag": each.replicas[partition].offset_lag,
                        "isFuture": each.replicas[partition].is_future,
                    }
                    for partition in java_order(each.replicas, partition_hash)
                    if not topics or partition.topic in topics
                ],
                "error": None if each.error is None else each.error.code.name,
                "logDir": each.path,
            }
            for each in directories
        ],
    }


TOOL = Tool(
    Table(
        "kafka-log-dirs",
        "This tool helps to query log directory usage on the specified brokers.",
        OPTIONS,
    ),
    log_dirs,
)
