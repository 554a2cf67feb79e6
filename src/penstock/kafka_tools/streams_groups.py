"""`kafka-streams-groups.sh`: lists, describes, resets and deletes streams groups (KIP-1071)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.group_states import chosen
from penstock.kafka_tools.options import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Option,
    Table,
    Takes,
    flag,
    number,
    text,
)
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
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
STATES = ("Dead", "Empty", "NotReady", "Assigning", "Reconciling", "Stable")
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    flag("list", "List all streams groups."),
    flag("describe", "Describe groups: offsets and lag, members or state."),
    flag("delete", "Delete groups."),
    flag("reset-offsets", "Reset offsets of input topics; needs --dry-run or --execute."),
    flag("delete-offsets", "Delete offsets of a group."),
    text("group", "GROUP", "A group; repeatable.", repeats=True),
    flag("all-groups", "All streams groups."),
    text("input-topic", "TOPIC[:0,1]", "A topic that the group reads; repeatable.", repeats=True),
    flag("all-input-topics", "All topics of users that the group reads."),
    flag("delete-all-internal-topics", "Delete the topics that the group made for itself, too."),
    text("delete-internal-topic", "TOPIC", "Delete this one of them; repeatable.", repeats=True),
    flag("offsets", "With --describe: offsets and lag. The default."),
    flag("members", "With --describe: members."),
    Option("state", "With --describe: the state; with --list: a filter.", Takes.OPTIONAL, "STATE"),
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
)


def groups(args: Arguments) -> int:
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, or --delete-offsets."
        )
    (action,) = actions
    _check(args, action)
    return run(args, partial(_act, args, action))


def _check(args: Arguments, action: str) -> None:
    if action in {"describe", "delete"} and not args.has("group", "all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: [all-groups], [group]")
    if action == "describe" and len(args.given(("members", "offsets", "state"))) > 1:
        raise UsageError(
            "Option [describe] takes at most one of these options: [members], [offsets], [state]"
        )
    if action == "delete-offsets" and not (
        args.has("group") and args.has("input-topic", "all-input-topics")
    ):
        raise UsageError(
            "Option [delete-offsets] takes the [group] and one of these options: "
            "[all-input-topics], [input-topic]"
        )
    if action == "reset-offsets":
        _check_reset(args)
    elif args.has("dry-run", "execute"):
        raise UsageError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    args.forbid("group", ["all-groups"])
    args.forbid("input-topic", ["all-input-topics"])


def _check_reset(args: Arguments) -> None:
    if args.has("dry-run") and args.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not args.has("dry-run", "execute"):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if not args.has("group", "all-groups"):
        raise UsageError("Option [reset-offsets] takes one of these options: [all-groups], [group]")
    for each in ("delete-all-internal-topics", "delete-internal-topic"):
        if args.has(each) and not args.has("execute"):
            raise UsageError(f"Option [{each}] takes [execute] when [reset-offsets] is used.")
    if len(args.given(POSITIONS)) != 1:
        raise UsageError(
            "Option [reset-offsets] takes exactly one of these options: "
            + ", ".join(f"[{each}]" for each in POSITIONS)
        )
    if not args.has("input-topic", "all-input-topics", "from-file"):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


async def _act(args: Arguments, action: str, client: "Client") -> int:
    from penstock.errors import KafkaError
    from penstock.kafka_tools import streams_group_changes as changes
    from penstock.kafka_tools.group_errors import GroupError, print_failure

    try:
        match action:
            case "list":
                await _list(args, client)
            case "describe":
                from penstock.kafka_tools.streams_group_describe import describe

                await describe(args, client)
            case "delete":
                await changes.delete(args, client)
            case "delete-offsets":
                await changes.delete_offsets_of(args, client)
            case _:
                await changes.reset(args, client)
    except (KafkaError, GroupError) as error:
        print_failure(error, "streams")
        return 1  # unlike the tools for other groups
    return 0


async def _list(args: Arguments, client: "Client") -> None:
    from penstock.client.groups import list_groups
    from penstock.client.streams_groups import STREAMS

    states = chosen(args, "state", STATES)
    found = [each for each in await list_groups(client) if each.type.lower() == STREAMS]
    if not args.has("state"):
        for each in found:
            print(each.id)
        return
    found = [each for each in found if not states or each.state in states]
    width = max([15, *(len(each.id) for each in found)])
    print(f"{'GROUP':<{width}} STATE")
    for each in found:
        print(f"{each.id:<{width}} {each.state}")


TOOL = Tool(
    Table(
        "kafka-streams-groups",
        "This tool helps to list, describe, delete and reset streams groups.",
        OPTIONS,
    ),
    groups,
    lambda error, _: f"\nError: Executing streams group command failed due to {error}",
    failed_on_stdout=True,
)
