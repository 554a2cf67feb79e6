"""`kafka-reassign-partitions.sh`: plans, starts, verifies, lists and cancels reassignments."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import CLUSTER, Option, Table, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
PLAN, TOPICS = "reassignment-json-file", "topics-to-move-json-file"
OPTIONS: Sequence[Option] = (
    *CLUSTER,
    text("bootstrap-controller", "HOST:PORT", "Not offered: there is no KRaft."),
    flag("generate", "Print a plan that moves topics to brokers; nothing is moved."),
    flag("execute", "Start the moves of a plan."),
    flag("verify", "Say how far the moves of a plan are; removes throttles when they are done."),
    flag("cancel", "Cancel the moves of a plan."),
    flag("list", "List all moves."),
    text(PLAN, "FILE", "The plan, in JSON."),
    text(TOPICS, "FILE", "The topics to move, in JSON."),
    text("broker-list", "0,1,...", "The brokers to move the topics to."),
    flag("disable-rack-aware", "Place replicas without regard to racks."),
    number("throttle", "BYTES", "Bytes per second for moves between brokers.", default=-1),
    number(
        "replica-alter-log-dirs-throttle",
        "BYTES",
        "Bytes per second for moves between directories.",
        default=-1,
    ),
    number("timeout", "MS", "Accepted, without effect.", default=10_000),
    flag("additional", "In addition to moves that are going on."),
    flag("preserve-throttles", "Do not change throttles."),
    flag("disallow-replication-factor-change", "Refuse a plan that changes it."),
)
NEEDED = {
    "generate": ("broker-list", TOPICS),
    "execute": (PLAN,),
    "verify": (PLAN,),
    "cancel": (PLAN,),
    "list": (),
}


def reassign(args: Arguments) -> int:
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --generate, --execute, --verify, --cancel, "
            "--list"
        )
    if args.has("bootstrap-controller"):
        raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    (action,) = actions
    args.require(*NEEDED[action])
    run(args, partial(_act, args, action))
    return 0


async def _act(args: Arguments, action: str, client: "Client") -> None:
    from penstock.kafka_tools import reassign_plan, reassign_run

    match action:
        case "generate":
            await reassign_plan.generate(
                client,
                reassign_plan.read_topics(args.text(TOPICS)),
                args.text("broker-list"),
                rack_aware=not args.has("disable-rack-aware"),
            )
        case "execute":
            await reassign_run.execute(args, client, reassign_plan.read_plan(args.text(PLAN)))
        case "verify":
            await reassign_run.verify(args, client, reassign_plan.read_plan(args.text(PLAN)))
        case "cancel":
            await reassign_run.cancel(args, client, reassign_plan.read_plan(args.text(PLAN)))
        case _:
            await reassign_run.list_moves(client)


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.client.errors import BrokerRefused
    from penstock.kafka_tools.messages import exception_name, refusal_text

    reason = refusal_text(error)
    if isinstance(error, BrokerRefused):
        reason = f"{exception_name(error)}: {reason}"
    return f"Error: {reason}"


TOOL = Tool(
    Table(
        "kafka-reassign-partitions",
        "This tool helps to move topic partitions between replicas.",
        OPTIONS,
    ),
    reassign,
    failed,
    failed_on_stdout=True,
)
