"""`kafka-share-groups.sh`: lists, describes, resets and deletes share groups."""

import sys
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
    from penstock.client.group_description import GroupDescription

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
STATES = ("Empty", "Stable", "Dead")
POSITIONS = ("to-datetime", "to-earliest", "to-latest")
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    flag("list", "List all share groups."),
    flag("describe", "Describe groups: offsets, members or state."),
    flag("delete", "Delete groups."),
    flag("reset-offsets", "Reset where a group begins; needs --dry-run or --execute."),
    flag("delete-offsets", "Delete offsets of a group."),
    text("group", "GROUP", "A group; repeatable.", repeats=True),
    flag("all-groups", "All share groups."),
    text("topic", "TOPIC[:0,1]", "A topic, or some of its partitions; repeatable.", repeats=True),
    flag("all-topics", "With --reset-offsets: all topics of the group."),
    flag("offsets", "With --describe: offsets and lag. The default."),
    flag("members", "With --describe: members."),
    Option("state", "With --describe: the state; with --list: a filter.", Takes.OPTIONAL, "STATE"),
    flag("verbose", "With --describe: more columns."),
    number("timeout", "MS", "Accepted, without effect.", default=30_000),
    flag("dry-run", "Only show the new offsets."),
    flag("execute", "Reset the offsets."),
    text("to-datetime", "YYYY-MM-DDThh:mm:ss.sss", "Reset to the offset at this time."),
    flag("to-earliest", "Reset to the earliest offset."),
    flag("to-latest", "Reset to the latest offset."),
)


def groups(args: Arguments) -> int:
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets."
        )
    (action,) = actions
    _check(args, action)
    return run(args, partial(_act, args, action))


def _check(args: Arguments, action: str) -> None:
    match action:
        case "describe":
            if not args.has("group", "all-groups"):
                raise UsageError(
                    "Option [describe] takes one of these options: [all-groups], [group]"
                )
            if len(args.given(("members", "offsets", "state"))) > 1:
                raise UsageError(
                    "Option [describe] takes at most one of these options: [members], [offsets], "
                    "[state]"
                )
        case "delete":
            if not args.has("group", "all-groups"):
                raise UsageError("Option [delete] takes the options [group] or [all-groups]")
            args.forbid("topic", ["delete"])
        case "delete-offsets":
            if not (args.has("group") and args.has("topic")):
                raise UsageError(
                    "Option [delete-offsets] takes the following options: [group], [topic]"
                )
        case "reset-offsets":
            _check_reset(args)
        case _:
            args.forbid("group", ["list"])
    args.forbid("group", ["all-groups"])


def _check_reset(args: Arguments) -> None:
    if not args.has("dry-run", "execute"):
        raise UsageError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if args.has("dry-run") and args.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not args.has("group"):
        raise UsageError("Option [reset-offsets] takes the option: [group]")
    if not args.has("topic", "all-topics"):
        raise UsageError("Option [reset-offsets] takes one of these options: [all-topics], [topic]")
    for each in POSITIONS:
        args.forbid(each, [other for other in POSITIONS if other != each])
    if not args.has(*POSITIONS):
        raise UsageError(
            "Option [reset-offsets] takes one of these options: [to-datetime], [to-earliest], "
            "[to-latest]"
        )


async def _act(args: Arguments, action: str, client: "Client") -> int:
    from penstock.errors import KafkaError
    from penstock.kafka_tools import share_group_changes as changes
    from penstock.kafka_tools.group_errors import GroupError, print_failure

    try:
        match action:
            case "list":
                await _list(args, client)
            case "describe":
                await _describe(args, client)
            case "delete":
                await changes.delete(args, client)
            case "delete-offsets":
                await changes.delete_offsets(args, client)
            case _:
                return await changes.reset(args, client)
    except (KafkaError, GroupError) as error:
        print_failure(error, "share")
    return 0  # 0 even after a printed error, like Kafka's tool


async def _list(args: Arguments, client: "Client") -> None:
    from penstock.client.groups import list_groups
    from penstock.client.share_groups import SHARE

    states = chosen(args, "state", STATES)
    found = [each for each in await list_groups(client) if each.type.lower() == SHARE]
    if not args.has("state"):
        for each in found:
            print(each.id)
        return
    found = [each for each in found if not states or each.state in states]
    width = max([15, *(len(each.id) for each in found)])
    print(f"{'GROUP':<{width}} STATE")
    for each in found:
        print(f"{each.id:<{width}} {each.state}")


async def _describe(args: Arguments, client: "Client") -> None:
    from penstock.client.share_groups import describe_share_group
    from penstock.kafka_tools.share_group_changes import chosen_groups

    verbose = args.has("verbose")
    for name in await chosen_groups(args, client):
        group = await describe_share_group(client, name)
        if args.has("members"):
            await _print_members(client, group, verbose=verbose)
        elif args.has("state"):
            await _print_state(client, group, verbose=verbose)
        else:
            await _print_offsets(client, group, verbose=verbose)


async def _print_offsets(client: "Client", group: "GroupDescription", *, verbose: bool) -> None:
    from penstock.client.share_groups import share_offsets
    from penstock.kafka_tools.group_describe import print_rows

    def shown(figure: int) -> str:
        return str(figure) if figure >= 0 else "-"

    found = await share_offsets(client, group.id)
    if not found:
        print(f"\nShare group '{group.id}' has no offset information.")
        return
    lines = [["TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG"]]
    for each, at in sorted(found.items()):
        lines.append(
            [
                each.topic,
                str(each.partition),
                shown(at.leader_epoch),
                shown(at.start),
                shown(at.lag),
            ]
        )
    widths = [15, 10, 13, 13, 0]
    if not verbose:
        lines, widths = [line[:2] + line[3:] for line in lines], [15, 10, 13, 0]
    print_rows(group.id, lines, widths, {0})


async def _print_members(client: "Client", group: "GroupDescription", *, verbose: bool) -> None:
    from penstock.client.share_group_admin import member_epochs
    from penstock.kafka_tools.group_describe import print_rows, spelled

    if not group.members:
        _print_empty(group)
        return
    epochs = await member_epochs(client, group.id) if verbose else {}
    lines = [["CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH", "ASSIGNMENT"]]
    lines += [
        [
            each.id,
            f"/{each.host}",
            each.client_id,
            str(len(each.partitions)),
            str(epochs.get(each.id, "-")),
            spelled(each.partitions),
        ]
        for each in sorted(group.members, key=lambda member: -len(member.partitions))
    ]
    widths = [15, 15, 15, 12, 13, 0]
    if not verbose:
        lines, widths = [line[:4] + line[5:] for line in lines], [15, 15, 15, 12, 0]
    print_rows(group.id, lines, widths, {0, 1, 2})


async def _print_state(client: "Client", group: "GroupDescription", *, verbose: bool) -> None:
    from penstock.client.groups import find_coordinator
    from penstock.client.route import ToCoordinator
    from penstock.kafka_tools.group_describe import print_rows

    if not group.members:
        _print_empty(group)
    coordinator = await find_coordinator(client, ToCoordinator(group.id))
    lines = [
        ["COORDINATOR (ID)", "STATE", "GROUP-EPOCH", "ASSIGNMENT-EPOCH", "#MEMBERS"],
        [
            f"{coordinator.address}  ({coordinator.id})",
            group.state,
            str(group.epoch),
            str(group.assignment_epoch),
            str(len(group.members)),
        ],
    ]
    widths = [25, 15, 12, 17, 0]
    if not verbose:
        lines, widths = [line[:2] + line[4:] for line in lines], [25, 15, 0]
    print_rows(group.id, lines, widths, {0})


def _print_empty(group: "GroupDescription") -> None:
    print(f"\nShare group '{group.id}' has no active members.", file=sys.stderr)


TOOL = Tool(
    Table(
        "kafka-share-groups",
        "This tool helps to list, describe, reset and delete share groups.",
        OPTIONS,
    ),
    groups,
    lambda error, _: f"\nError: Executing share group command failed due to {error}",
    failed_on_stdout=True,
)
