"""`kafka-consumer-groups.sh`: lists, describes, resets and deletes consumer groups."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.group_scope import consumer_groups
from penstock.kafka_tools.group_states import chosen
from penstock.kafka_tools.options import CLUSTER, Option, Table, Takes, flag, number, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.groups import GroupListing

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
POSITIONS = (
    "to-offset",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
    "from-file",
    "to-current",
)
STATES = (
    "Dead",
    "Empty",
    "PreparingRebalance",
    "Stable",
    "Assigning",
    "CompletingRebalance",
    "Reconciling",
)
TYPES = ("Classic", "Consumer")
OPTIONS: Sequence[Option] = (
    *CLUSTER,
    flag("list", "List all consumer groups."),
    flag("describe", "Describe groups: offsets and lag, members or state."),
    flag("delete", "Delete groups."),
    flag("reset-offsets", "Reset offsets of groups; shows the new ones unless --execute is given."),
    flag("delete-offsets", "Delete offsets of a group."),
    text("validate-regex", "REGEX", "Say whether a subscription may name topics by it (RE2)."),
    text("group", "GROUP", "A group; repeatable.", repeats=True),
    text("topic", "TOPIC[:0,1]", "A topic, or some of its partitions; repeatable.", repeats=True),
    flag("all-topics", "All topics with offsets of the group."),
    flag("all-groups", "All groups."),
    flag("offsets", "With --describe: offsets and lag. The default."),
    flag("members", "With --describe: members."),
    Option("state", "With --describe: the state; with --list: a filter.", Takes.OPTIONAL, "STATE"),
    Option("type", "With --list: a filter.", Takes.OPTIONAL, "TYPE"),
    flag("verbose", "With --describe: more columns."),
    number("timeout", "MS", "Accepted, without effect.", default=30_000),
    flag("dry-run", "Only show the new offsets."),
    flag("execute", "Reset the offsets."),
    flag("export", "Print the offsets as CSV."),
    number("to-offset", "OFFSET", "Reset to this offset."),
    text("to-datetime", "YYYY-MM-DDThh:mm:ss.sss", "Reset to the offset at this time."),
    text("by-duration", "PnDTnHnMnS", "Reset to the offset at this long ago."),
    flag("to-earliest", "Reset to the earliest offset."),
    flag("to-latest", "Reset to the latest offset."),
    number("shift-by", "N", "Move the current offset by N, which may be negative."),
    text("from-file", "FILE", "Reset to the offsets in a CSV file.", repeats=True),
    flag("to-current", "Reset to the current offset."),
    flag("new-consumer", "Accepted, without effect.", old=True),
)


def groups(args: Arguments) -> int:
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets, --validate-regex"
        )
    (action,) = actions
    if action == "validate-regex":
        _validate(args.text(action))
        return 0
    _check(args, action)
    run(args, partial(_act, args, action))
    return 0  # 0 even after a printed error, like Kafka's tool


def _validate(expression: str) -> None:
    from penstock.config.regex import InvalidRegularExpression, matching

    try:
        matching(expression, ())
    except InvalidRegularExpression as error:
        reason = str(error).removeprefix(f"{expression!r}: ")
        print(f"The regular expression `{expression}` is invalid: {reason}.")
    else:
        print(f"The regular expression `{expression}` is valid.")


def _check(args: Arguments, action: str) -> None:
    if action in {"describe", "reset-offsets", "delete"} and not args.has("group", "all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")
    if action == "delete-offsets" and not (args.has("group") and args.has("topic")):
        raise UsageError("Option [delete-offsets] takes the following options: [topic], [group]")
    args.forbid("group", ["all-groups"])
    args.forbid("topic", ["all-topics"])
    args.forbid("dry-run", ["execute"])
    if action == "describe" and len(args.given(("members", "offsets", "state"))) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if action == "reset-offsets":
        chosen = args.given(POSITIONS)
        if len(chosen) != 1:
            raise UsageError(
                "Option [reset-offsets] takes exactly one of these options: "
                + ", ".join(f"[{each}]" for each in POSITIONS)
            )
        if not args.has("topic", "all-topics", "from-file"):
            raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")
        if args.has("to-offset") and args.number("to-offset") < 0:
            raise UsageError("--to-offset must not be negative")


async def _act(args: Arguments, action: str, client: "Client") -> None:
    from penstock.errors import KafkaError
    from penstock.kafka_tools.group_errors import GroupError, print_failure

    try:
        match action:
            case "list":
                await _list(args, client)
            case "describe":
                from penstock.kafka_tools.group_describe import describe

                await describe(args, client)
            case "delete":
                from penstock.kafka_tools.group_delete import delete

                await delete(args, client)
            case "delete-offsets":
                from penstock.kafka_tools.group_delete import delete_offsets_of

                await delete_offsets_of(args, client)
            case _:
                from penstock.kafka_tools.group_reset import reset

                await reset(args, client)
    except (KafkaError, GroupError) as error:
        print_failure(error)


async def _list(args: Arguments, client: "Client") -> None:
    states = chosen(args, "state", STATES)
    types = chosen(args, "type", TYPES)
    found = [
        each
        for each in await consumer_groups(client)
        if (not states or each.state in states) and (not types or each.type.capitalize() in types)
    ]
    _print_list(args, found)


def _print_list(args: Arguments, found: "list[GroupListing]") -> None:
    columns = [name for name in ("type", "state") if args.has(name)]
    if not columns:
        for each in found:
            print(each.id)
        return
    width = max([25, *(len(each.id) for each in found)])

    def row(name: str, kind: str, state: str) -> str:
        cells = {"type": kind, "state": state}
        return " ".join([f"{name:<{width}}", *(f"{cells[each]:<20}" for each in columns)])

    print(row("GROUP", "TYPE", "STATE"))
    for each in found:
        print(row(each.id, each.type.capitalize(), each.state))


TOOL = Tool(
    Table(
        "kafka-consumer-groups",
        "This tool helps to list all consumer groups, describe a consumer group, delete consumer "
        "group info, or reset consumer group offsets.",
        OPTIONS,
    ),
    groups,
    lambda error, _: f"\nError: Executing consumer group command failed due to {error}",
    failed_on_stdout=True,
)
