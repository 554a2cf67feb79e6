"""`kafka-streams-groups.sh --describe`: offsets with lag, members, or the state of groups."""

from collections.abc import Iterable, Sequence

from penstock.client.cluster import Client
from penstock.client.groups import committed_offsets, find_coordinator
from penstock.client.listing import EARLIEST, LATEST
from penstock.client.offsets import list_offsets
from penstock.client.route import ToCoordinator
from penstock.client.streams_groups import active_partitions, fetch_streams_group
from penstock.kafka_tools.java_order import java_order, partition_hash
from penstock.kafka_tools.parser import Arguments
from penstock.kafka_tools.streams_group_changes import chosen_groups
from penstock.kafka_tools.streams_topology import tasks
from penstock.wire.messages.streams_group_describe import DescribedGroup


async def describe(args: Arguments, client: Client) -> None:
    verbose = args.has("verbose")
    for name in await chosen_groups(args, client):
        group = await fetch_streams_group(client, name)
        if args.has("members"):
            _print_members(group, verbose=verbose)
        elif args.has("state"):
            await _print_state(client, group, verbose=verbose)
        else:
            await _print_offsets(client, group, verbose=verbose)


async def _print_offsets(client: Client, group: DescribedGroup, *, verbose: bool) -> None:
    """Print the offsets of the partitions that the members' active tasks read."""
    partitions = java_order(
        (each for member in group.members for each in active_partitions(member, group)),
        partition_hash,
    )
    if not partitions:
        return
    committed = await committed_offsets(client, group.group_id)
    starts = await list_offsets(client, dict.fromkeys(partitions, EARLIEST))
    ends = await list_offsets(client, dict.fromkeys(partitions, LATEST))
    lines = [
        [
            "TOPIC",
            "PARTITION",
            "CURRENT-OFFSET",
            "LEADER-EPOCH",
            "LOG-END-OFFSET",
            "OFFSET-LAG",
        ]
    ]
    for each in partitions:
        at, end = committed.get(each), ends[each].offset
        lag = end - (starts[each].offset if at is None else at.offset)
        lines.append(
            [
                each.topic,
                str(each.partition),
                "-" if at is None else str(at.offset),
                "-" if at is None or at.leader_epoch < 0 else str(at.leader_epoch),
                str(end),
                str(lag),
            ]
        )
    widths = [15, 10, 15, 15, 15, 15]
    if not verbose:
        lines, widths = [[*line[:2], line[5]] for line in lines], [15, 10, 0]
    _print_rows(group.group_id, lines, widths, {0})


def _print_members(group: DescribedGroup, *, verbose: bool) -> None:
    if not group.members:
        return
    lines = [["MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"]]
    lines += [
        [each.member_id, each.process_id, each.client_id, tasks(each.assignment)]
        for each in group.members
    ]
    widths, growing = [15, 15, 15, 0], {0, 1, 2}
    if verbose:
        lines = [
            [
                "TARGET-ASSIGNMENT-EPOCH",
                "TOPOLOGY-EPOCH",
                "MEMBER",
                "MEMBER-PROTOCOL",
                "MEMBER-EPOCH",
                *lines[0][1:],
            ]
        ]
        lines += [
            [
                str(group.assignment_epoch),
                str(each.topology_epoch),
                each.member_id,
                "classic" if each.is_classic else "streams",
                str(each.member_epoch),
                each.process_id,
                each.client_id,
                tasks(each.assignment) + tasks(each.target_assignment, "TARGET-"),
            ]
            for each in group.members
        ]
        widths, growing = [25, 14, 15, 15, 15, 15, 15, 0], {2, 5, 6}
    _print_rows(group.group_id, lines, widths, growing)


async def _print_state(client: Client, group: DescribedGroup, *, verbose: bool) -> None:
    if not group.members:
        print(f"\nError: Streams group '{group.group_id}' has no active members.")
    coordinator = await find_coordinator(client, ToCoordinator(group.group_id))
    lines = [
        ["COORDINATOR (ID)", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"],
        [
            f"{coordinator.address} ({coordinator.id})",
            group.group_state,
            str(group.group_epoch),
            str(group.assignment_epoch),
            str(len(group.members)),
        ],
    ]
    widths = [25, 25, 15, 25, 0]
    if not verbose:
        lines, widths = [line[:2] + line[4:] for line in lines], [25, 25, 0]
    _print_rows(group.group_id, lines, widths, {0})


def _print_rows(
    group: str, lines: Sequence[Sequence[str]], widths: Sequence[int], growing: Iterable[int]
) -> None:
    """Print header and rows, each after the group's name."""
    fitted = [
        max([width, *(len(line[index]) for line in lines)]) if index in growing else width
        for index, width in enumerate(widths)
    ]
    name_width = max(15, len(group))
    for number, line in enumerate(lines):
        name = "GROUP" if number == 0 else group
        cells = (f"{cell:<{width}}" for cell, width in zip(line, fitted, strict=True))
        print(" ".join([f"{name:<{name_width}}", *cells]))
