"""`kafka-metadata-quorum.sh`: refuses, because a cluster with ZooKeeper has no KRaft quorum."""

from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import BOOTSTRAP, COMMAND_CONFIG, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

APIS = {"DESCRIBE_QUORUM": 55, "ADD_RAFT_VOTER": 80, "REMOVE_RAFT_VOTER": 81}


def quorum(args: Arguments) -> int:
    if args.has("bootstrap-controller"):
        raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    match args.command:
        case "describe":
            _check_describe(args)
            api = "DESCRIBE_QUORUM"
        case "add-controller":
            if not args.has("command-config"):
                raise ToolError(
                    "You must supply the configuration file of the controller you are adding when "
                    "using add-controller."
                )
            api = "ADD_RAFT_VOTER"
        case "remove-controller":
            args.require("controller-id", "controller-directory-id")
            api = "REMOVE_RAFT_VOTER"
        case _:
            raise UsageError("kafka-metadata-quorum: error: too few arguments")
    run(args, partial(_refuse, api))
    return 0


def _check_describe(args: Arguments) -> None:
    if args.has("status") and args.has("replication"):
        raise ToolError(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not args.has("status", "replication"):
        raise ToolError(
            "One of --status or --replication must be specified with describe sub-command"
        )


async def _refuse(api: str, client: "Client") -> None:
    """Fail like Kafka's tool with a broker that has no KRaft."""
    from penstock.client.route import ANY

    connection = await client.connection(ANY)
    if APIS[api] in connection.versions:
        raise ToolError("this cluster has KRaft: ask it with Kafka's own kafka-metadata-quorum.sh")
    raise ToolError(
        "org.apache.kafka.common.errors.UnsupportedVersionException: The node does not support "
        f"{api}"
    )


TOOL = Tool(
    Table(
        "kafka-metadata-quorum",
        "This tool describes kraft metadata quorum status.",
        (
            BOOTSTRAP,
            text("bootstrap-controller", "HOST:PORT,...", "KRaft controllers."),
            COMMAND_CONFIG,
        ),
        {
            "describe": Table(
                "describe",
                "Describe the metadata quorum info.",
                (
                    flag("status", "A short summary."),
                    flag("replication", "Details of the replication."),
                    flag("human-readable", "Times that people can read."),
                ),
            ),
            "add-controller": Table(
                "add-controller",
                "Add a controller to the KRaft controller cluster.",
                (flag("dry-run", "Only say what would be done."),),
            ),
            "remove-controller": Table(
                "remove-controller",
                "Remove a controller from the KRaft controller cluster.",
                (
                    number("controller-id", "ID", "The controller.", also=("i",)),
                    text("controller-directory-id", "ID", "Its directory.", also=("d",)),
                    flag("dry-run", "Only say what would be done."),
                ),
            ),
        },
    ),
    quorum,
    lambda error, _: f"{error}",
)
